# Flattens a JSON file: one line per value, `path <tab> s|n|l <tab> value` (text, number, or true, false, null), with a path
# like nodes.0.name. Exit status 1: not one whole JSON value, so nothing of what was printed counts. Arrays and objects
# without content print nothing. White space in texts becomes a space. SKIP names a key of the top that is not printed.

function fail() { broken = 1; exit 1 }

# path: the keys and places from the top to here.
function path(    i, text) {
    text = ""
    for (i = 1; i <= depth; i++) text = text (i > 1 ? "." : "") (kind[i] == "{" ? key[i] : place[i])
    return text
}

function value(form, text) {
    if (want != "value" && want != "value or end") fail()
    if (depth == 0 || (kind[1] == "{" && key[1] != SKIP) || kind[1] == "[") print path() "\t" form "\t" text
    want = depth ? "comma" : "nothing"
}

function plain(text) {
    text = substr(text, 2, length(text) - 2)
    # A backslash of its own steps aside, so that what follows it is not taken for an escape.
    gsub(/\\\\/, "\001", text)
    gsub(/\\[tnrbf]/, " ", text)
    gsub(/\\"/, "\"", text)
    gsub(/\\\//, "/", text)
    gsub(/\001/, "\\", text)
    gsub(/\t/, " ", text)
    return text
}

function opens(bracket) {
    if (want != "value" && want != "value or end") fail()
    depth++
    kind[depth] = bracket
    place[depth] = 0
    want = (bracket == "{") ? "key or end" : "value or end"
}

function closes(bracket) {
    if (depth == 0 || kind[depth] != (bracket == "}" ? "{" : "[")) fail()
    if (want != "comma" && want != (bracket == "}" ? "key or end" : "value or end")) fail()
    depth--
    want = depth ? "comma" : "nothing"
}

function token(text,    first) {
    first = substr(text, 1, 1)
    if (first == "{" || first == "[") { opens(first); return }
    if (first == "}" || first == "]") { closes(first); return }
    if (first == ",") {
        if (want != "comma") fail()
        if (kind[depth] == "{") want = "key"; else { place[depth]++; want = "value" }
        return
    }
    if (first == ":") {
        if (want != "colon") fail()
        want = "value"
        return
    }
    if (first == "\"") {
        if (want == "key" || want == "key or end") { key[depth] = plain(text); want = "colon"; return }
        value("s", plain(text))
        return
    }
    value(text ~ /^[a-z]/ ? "l" : "n", text)
}

BEGIN { want = "value"; depth = 0; broken = 0 }

{
    from = 1
    # A window on the line: a match on the whole of a long one would copy it for every token.
    while (1) {
        window = substr($0, from, 4000)
        match(window, /^[ \t\r]*/)
        if (RLENGTH > 0) { from += RLENGTH; continue }
        if (window == "") break
        if (match(window, /^[][{}:,]/) || match(window, /^(true|false|null)/) || match(window, /^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?/)) {
            text = substr(window, 1, RLENGTH)
        } else {
            if (!match(window, /^"([^"\\]|\\.)*"/)) {
                window = substr($0, from)
                if (!match(window, /^"([^"\\]|\\.)*"/)) fail()
            }
            text = substr(window, 1, RLENGTH)
        }
        from += length(text)
        token(text)
    }
}

END { if (broken || want != "nothing") exit 1 }
