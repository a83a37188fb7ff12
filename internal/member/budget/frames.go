package budget

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/xylem-io/xylem/internal/weigh"
)

// whole weighs a response that is not a watch. It returns io.EOF only when the response may be
// decoded.
type whole struct {
	*reading
	ctx    context.Context //nolint:containedctx // the context of the request whose response this is
	json   *weigh.JSON     // nil for protobuf
	buffer *bytes.Buffer   // the protobuf read so far, from buffers
	length int64
	last   error
	// divisible means that the caller requests smaller pages if this one is too large.
	divisible bool
}

// buffers contains the buffers of pages that were read. Otherwise, a page would take several times its size,
// because its buffer grows while it is read.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Read implements io.Reader.
func (w *whole) Read(p []byte) (int, error) {
	if w.last != nil {
		return 0, w.last
	}
	n, err := w.reading.Read(p)
	switch w.length += int64(n); {
	case w.divisible && w.length > pageBytes:
		w.last = ErrDivide
	case w.length > AnswerLimit:
		w.last = w.limiter.tooLong(w.what, AnswerLimit)
	}
	if w.last != nil {
		return 0, w.last
	}
	if failed := w.weigh(p[:n]); failed != nil {
		w.last = failed
		return 0, w.last
	}
	if errors.Is(err, io.EOF) {
		if failed := w.end(); failed != nil {
			err = failed
		}
	}
	w.last = err
	return n, err
}

func (w *whole) weigh(data []byte) error {
	if w.json == nil {
		if w.buffer == nil {
			w.buffer, _ = buffers.Get().(*bytes.Buffer)
		}
		w.buffer.Write(data)
		return nil
	}
	for len(data) > 0 {
		taken, _, err := w.json.Weigh(data)
		if err != nil {
			return w.limiter.malformed(w.what, err)
		}
		data = data[taken:]
	}
	if weight, _ := w.json.Weight(); weight > w.limiter.Answer {
		return w.tooLarge()
	}
	return nil
}

func (w *whole) tooLarge() error {
	if w.divisible {
		return ErrDivide
	}
	return w.limiter.tooLarge(w.what)
}

// end weighs protobuf, and waits until the response may be decoded.
func (w *whole) end() error {
	if w.json != nil {
		weight, _ := w.json.Weight()
		return w.pace(w.ctx, weight)
	}
	weight, err := weigh.Protobuf(w.limiter.object, w.buffer.Bytes(), w.limiter.Answer)
	if w.buffer.Cap() <= pageBytes {
		w.buffer.Reset()
		buffers.Put(w.buffer)
	}
	w.buffer = nil
	switch {
	case errors.Is(err, weigh.ErrTooLarge):
		return w.tooLarge()
	case err != nil:
		return w.limiter.malformed(w.what, err)
	}
	return w.pace(w.ctx, weight)
}

// frames weighs the events of a protobuf watch. A length of four bytes precedes each event
// (k8s.io/apimachinery/pkg/util/framer).
type frames struct {
	*reading
	ctx   context.Context //nolint:containedctx // the context of the request whose response this is
	frame []byte          // the unread part of the current frame, including its length prefix
	last  error
	// buffer contains the current frame. Most frames reuse it.
	buffer bytes.Buffer
}

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	if len(f.frame) == 0 && f.last == nil {
		f.frame, f.last = f.next()
	}
	if f.last != nil {
		return 0, f.last
	}
	n := copy(p, f.frame)
	if f.frame = f.frame[n:]; len(f.frame) == 0 {
		f.frame = nil
		f.drop()
	}
	return n, nil
}

func (f *frames) next() ([]byte, error) {
	const header = 4
	var head [header]byte
	if _, err := io.ReadFull(f.reading, head[:]); err != nil {
		return nil, err //nolint:wrapcheck // callers compare with io.EOF, so do not wrap it
	}
	length := int64(binary.BigEndian.Uint32(head[:]))
	if length > FrameLimit {
		return nil, f.limiter.tooLong(f.what, FrameLimit)
	}
	// Beyond this size, the buffer grows with the data that arrives, because the announced length is
	// not trusted.
	const size = 16 << 10
	if f.buffer.Reset(); f.buffer.Cap() > size {
		f.buffer = bytes.Buffer{}
	}
	f.buffer.Grow(header + int(min(length, size)) + bytes.MinRead)
	f.buffer.Write(head[:])
	if _, err := io.CopyN(&f.buffer, f.reading, length); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	weight, err := weigh.Event(f.limiter.object, f.buffer.Bytes()[header:], f.limiter.Answer)
	switch {
	case errors.Is(err, weigh.ErrTooLarge):
		return nil, f.limiter.tooLarge(f.what)
	case err != nil:
		return nil, f.limiter.malformed(f.what, err)
	}
	return f.buffer.Bytes(), f.pace(f.ctx, weight)
}

// documents weighs the events of a JSON watch one by one.
type documents struct {
	*reading
	ctx  context.Context //nolint:containedctx // the context of the request whose response this is
	json *weigh.JSON
	last error
}

// Read implements io.Reader.
func (d *documents) Read(p []byte) (int, error) {
	if d.last != nil {
		return 0, d.last
	}
	n, err := d.reading.Read(p)
	if failed := d.weigh(p[:n]); failed != nil {
		n, err = 0, failed
	}
	d.last = err
	return n, err
}

func (d *documents) weigh(data []byte) error {
	for len(data) > 0 {
		taken, ended, err := d.json.Weigh(data)
		if err != nil {
			return d.limiter.malformed(d.what, err)
		}
		data = data[taken:]
		weight, length := d.json.Weight()
		switch {
		case length > FrameLimit:
			return d.limiter.tooLong(d.what, FrameLimit)
		case weight > d.limiter.Answer:
			return d.limiter.tooLarge(d.what)
		case ended:
			d.json = weigh.NewJSON(d.limiter.shapes)
			d.drop()
			if err := d.pace(d.ctx, weight); err != nil {
				return err
			}
		}
	}
	return nil
}
