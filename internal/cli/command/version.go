package command

// Version is the plugin's version. The build sets it (go build -ldflags -X); development builds
// have none.
var Version = ""
