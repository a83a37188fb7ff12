package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Content is what is copied from a volume: all files, or the bytes of a block device.
type Content struct {
	// Device means that the volume is a block device. Bytes is its size.
	Device bool
	Bytes  int64
}

// scriptArguments returns the arguments of the scripts.
func (c Content) scriptArguments() []string {
	if c.Device {
		return []string{strconv.FormatInt(c.Bytes, 10)}
	}
	return nil
}

// End is one end of a copy.
type End struct {
	// Pod is the name of the Pod with the volume.
	Pod string
	// Where describes the volume's location, for messages.
	Where string
}

// Copy copies the content of one volume to another. After each read, it calls count with the number
// of bytes read. It first removes the files that an earlier attempt left behind.
func (s Shell) Copy(ctx context.Context, from, to End, content Content, count func(int)) error {
	send, receive := sendFiles, receiveFiles
	if content.Device {
		send, receive = sendDevice, receiveDevice
	}
	return s.pipeBetweenPods(ctx, side{from, send}, side{to, receive}, count, content.scriptArguments()...)
}

// side is one end of a pipe, with its script.
type side struct {
	End
	script string
}

// pipeBetweenPods runs one script with the output of another as its input, in frames, and counts the bytes. It
// returns the first error, because an error at one end makes the other end fail too.
func (s Shell) pipeBetweenPods(ctx context.Context, from, to side, count func(int), args ...string) error {
	in := newScriptInput()
	group, ctx := errgroup.WithContext(ctx)
	var (
		once  sync.Once
		first error
	)
	ended := func(what string, end side, err error) error {
		if err == nil {
			return nil
		}
		err = fmt.Errorf("%s in %s: %w", what, end.Where, err)
		once.Do(func() { first = err })
		return err
	}
	group.Go(func() error {
		frames := &framer{to: in.w}
		err := s.run(ctx, from.Pod, from.script, nil, counted{frames, count}, args...)
		if err == nil {
			err = frames.endFrames()
		}
		if err = ended("read the disk", from, err); err != nil {
			_ = in.w.CloseWithError(err) // never returns an error
		}
		return err
	})
	group.Go(func() error {
		err := ended("write the copy", to, s.run(ctx, to.Pod, to.script, in, io.Discard, args...))
		_ = in.CloseWithError(errors.New("the other end has closed the stream")) // never returns an error
		return err
	})
	if err := group.Wait(); err != nil {
		return first
	}
	return nil
}

type counted struct {
	io.Writer
	count func(int)
}

// Write implements io.Writer.
func (c counted) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.count(n)
	return n, err //nolint:wrapcheck // the caller names the stream
}

var checksum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Sum returns the checksum of the content of a Pod's volume.
func (s Shell) Sum(ctx context.Context, pod string, content Content) (string, error) {
	script := sumFiles
	if content.Device {
		script = sumDevice
	}
	var out bytes.Buffer
	if err := s.run(ctx, pod, script, nil, &out, content.scriptArguments()...); err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(strings.TrimSpace(out.String()), " ")
	if !checksum.MatchString(first) {
		return "", fmt.Errorf("the script in Pod %q did not print a checksum, but %q", pod, first)
	}
	return first, nil
}

// UsedBytes estimates the number of bytes to copy from a Pod's volume with files.
func (s Shell) UsedBytes(ctx context.Context, pod string) (int64, error) {
	return s.readNumber(ctx, pod, usedBytes)
}

// DeviceBytes returns the size of a Pod's block device.
func (s Shell) DeviceBytes(ctx context.Context, pod string) (int64, error) {
	return s.readNumber(ctx, pod, deviceBytes)
}
