metadata description = 'Holds one chunk of what the server installs: the server reads it from the record of this deployment.'

@description('One chunk of the archive, base64; not secret.')
param content string

@description('The same chunk.')
output content string = content
