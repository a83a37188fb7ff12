package transfer

import (
	"fmt"
	"io"
)

const (
	// frameSize is the maximum size of a frame in bytes. The receiver runs a program for each frame.
	frameSize = 1 << 20
	// lastFrame follows the last frame, in place of a size.
	lastFrame = "end"
)

// framer writes frames. A frame is a line with the size of its content, followed by the content.
// The frames let the receiver detect the end of the data while its input is still open. If the
// input is closed, a container runtime may lose the last 64 KiB that the process has not read yet:
// containerd's CloseIO closes the pipe to the process while the shim is still copying data into the
// pipe. The input therefore stays open until the receiver has acknowledged the data.
type framer struct {
	to      io.Writer
	content []byte
}

// Write implements io.Writer.
func (f *framer) Write(b []byte) (int, error) {
	written := 0
	for len(b) > 0 {
		n := min(len(b), frameSize-len(f.content))
		f.content = append(f.content, b[:n]...)
		b, written = b[n:], written+n
		if len(f.content) == frameSize {
			if err := f.flushFrame(); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

func (f *framer) flushFrame() error {
	if len(f.content) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(f.to, "%d\n", len(f.content)); err != nil {
		return err //nolint:wrapcheck // the caller names the stream
	}
	_, err := f.to.Write(f.content)
	f.content = f.content[:0]
	return err //nolint:wrapcheck // the caller names the stream
}

// endFrames writes the remaining content, and reports the end of the data.
func (f *framer) endFrames() error {
	if err := f.flushFrame(); err != nil {
		return err
	}
	_, err := io.WriteString(f.to, lastFrame+"\n")
	return err //nolint:wrapcheck // the caller names the stream
}
