// Command workload runs in the tests' Pods. It writes to a file on its volume, and serves the
// file's content over HTTP. It replaces nginx where nginx cannot be pulled.
//
//	GET /   the content of the file: a line for each start, and posted lines
//	POST /  append a line, log it, and respond when it is on the disk
//	POST /end  exit with code 7
//
// With arguments, it runs one of these commands, for kubectl exec and debug:
//
//	say WORD...      print the words, and exit with code 7
//	copy             copy the input to the output
//	terminal         print the size of the terminal, or that there is none
//	show             print the content of the file
//	replace WORD...  replace the content of the file with one line
//	self             read the program's own Pod with client-go, again and again, and print each read
//
// If its file name is tar, it acts as the tar command that kubectl cp runs.
package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"
)

const (
	file    = "/data/lines"
	address = ":80"
	// limit is the maximum length of a posted line, in bytes.
	limit = 4 << 10
)

// exitCode is the exit code of "say" and of /end.
const exitCode = 7

func main() {
	if filepath.Base(os.Args[0]) == "tar" {
		if err := archive(os.Args[1:]); err != nil {
			log.Fatal(err)
		}
		return
	}
	if len(os.Args) > 1 {
		os.Exit(execute(os.Args[1:]))
	}
	name, err := os.Hostname()
	if err != nil {
		log.Fatal(err)
	}
	lines := &lines{path: file}
	// Without a volume, the Pod still serves requests.
	if _, err := os.Stat(filepath.Dir(file)); err == nil {
		if err := lines.append("started " + name); err != nil {
			log.Fatal(err)
		}
	}
	server := &http.Server{Addr: address, Handler: lines, ReadHeaderTimeout: 10 * time.Second}
	log.Printf("serving %s", name)
	log.Fatal(server.ListenAndServe())
}

// execute runs a command that kubectl exec requests, and returns its exit code.
func execute(args []string) int {
	switch args[0] {
	case "say":
		fmt.Fprintln(os.Stdout, strings.Join(args[1:], " "))
		return exitCode
	case "terminal":
		fmt.Fprintln(os.Stdout, terminal(int(os.Stdin.Fd())))
		return 0
	case "copy":
		return code(copied(os.Stdin))
	case "self":
		return code(readSelf())
	case "show":
		return code(show(file))
	case "replace":
		return code(write(file, os.O_TRUNC, strings.Join(args[1:], " ")))
	}
	return 1
}

// code logs an error and returns the exit code.
func code(err error) int {
	if err != nil {
		log.Print(err)
		return 1
	}
	return 0
}

func copied(in io.Reader) error {
	_, err := io.Copy(os.Stdout, in)
	return err
}

func show(path string) error {
	content, err := os.ReadFile(path) //nolint:gosec // Our own file.
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(content)
	return err
}

// terminal prints the size of the terminal. It waits for the size, because kubectl sends it after
// the program has started.
func terminal(fd int) string {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	for {
		columns, rows, err := term.GetSize(fd)
		switch {
		case err != nil:
			return "no terminal"
		case columns > 0:
			return fmt.Sprintf("terminal of %dx%d", columns, rows)
		}
		<-changed
	}
}

type lines struct {
	path string
	mu   sync.Mutex
}

func (l *lines) append(line string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return write(l.path, os.O_APPEND, line)
}

// write writes a line to a file. It returns when the line is on the disk.
func write(path string, how int, line string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|how, 0o600) //nolint:gosec // Our own file.
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(f, line); err != nil {
		return err
	}
	// An acknowledged line must survive a crash of the node.
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// ServeHTTP implements http.Handler.
func (l *lines) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && r.URL.Path == "/end" {
		log.Print("ending, as requested")
		os.Exit(exitCode)
	}
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
		if err == nil {
			log.Printf("appending %q", bytes.TrimSpace(body))
			err = l.append(string(bytes.TrimSpace(body)))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	content, err := os.ReadFile(l.path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = w.Write(content)
}
