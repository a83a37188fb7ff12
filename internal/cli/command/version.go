package command

// Version is the plugin's version. The build sets it (go build -ldflags -X); a build for
// development has none.
var Version = ""
