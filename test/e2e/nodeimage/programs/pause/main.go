// Command pause is the first process of every Pod. It keeps the Pod's namespaces open until it
// receives a signal, and reaps orphans.
package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); errors.Is(err, syscall.EINTR) {
				continue
			} else if pid <= 0 || err != nil {
				break
			}
		}
	}
}
