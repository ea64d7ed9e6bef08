metadata description = 'Carries one piece of what the server installs; its deployment record keeps it, and the server reads it from there.'

@description('One piece of the archive, base64; not secret.')
param content string

@description('The same piece.')
output content string = content
