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

// wholeBody weighs a response that is not a watch. It returns io.EOF only when the response may be
// decoded.
type wholeBody struct {
	*countedBody
	ctx       context.Context    //nolint:containedctx // the context of the request whose response this is
	json      *weigh.JSONWeigher // nil for protobuf
	buffer    *bytes.Buffer      // the protobuf read so far, from buffers
	length    int64
	lastError error
	// divisible means that the caller requests smaller pages if this one is too large.
	divisible bool
}

// pageBuffers contains the buffers of pages that were read. Otherwise, a page would take several times its size,
// because its buffer grows while it is read.
var pageBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Read implements io.Reader.
func (w *wholeBody) Read(p []byte) (int, error) {
	if w.lastError != nil {
		return 0, w.lastError
	}
	n, err := w.countedBody.Read(p)
	switch w.length += int64(n); {
	case w.divisible && w.length > maxDivisiblePageBytes:
		w.lastError = ErrPageTooLarge
	case w.length > MaxResponseBytes:
		w.lastError = w.limiter.rejectTooLong(w.what, MaxResponseBytes)
	}
	if w.lastError != nil {
		return 0, w.lastError
	}
	if failed := w.weighData(p[:n]); failed != nil {
		w.lastError = failed
		return 0, w.lastError
	}
	if errors.Is(err, io.EOF) {
		if failed := w.finishWeighing(); failed != nil {
			err = failed
		}
	}
	w.lastError = err
	return n, err
}

func (w *wholeBody) weighData(data []byte) error {
	if w.json == nil {
		if w.buffer == nil {
			w.buffer, _ = pageBuffers.Get().(*bytes.Buffer)
		}
		w.buffer.Write(data)
		return nil
	}
	for len(data) > 0 {
		taken, _, err := w.json.WeighBytes(data)
		if err != nil {
			return w.limiter.rejectMalformed(w.what, err)
		}
		data = data[taken:]
	}
	if weight, _ := w.json.WeightAndLength(); weight > w.limiter.ResponseBytes {
		return w.rejectTooLarge()
	}
	return nil
}

func (w *wholeBody) rejectTooLarge() error {
	if w.divisible {
		return ErrPageTooLarge
	}
	return w.limiter.rejectTooLarge(w.what)
}

// finishWeighing weighs protobuf, and waits until the response may be decoded.
func (w *wholeBody) finishWeighing() error {
	if w.json != nil {
		weight, _ := w.json.WeightAndLength()
		return w.waitForDecodeRate(w.ctx, weight)
	}
	weight, err := weigh.WeighProtobuf(w.limiter.newObject, w.buffer.Bytes(), w.limiter.ResponseBytes)
	if w.buffer.Cap() <= maxDivisiblePageBytes {
		w.buffer.Reset()
		pageBuffers.Put(w.buffer)
	}
	w.buffer = nil
	switch {
	case errors.Is(err, weigh.ErrTooLarge):
		return w.rejectTooLarge()
	case err != nil:
		return w.limiter.rejectMalformed(w.what, err)
	}
	return w.waitForDecodeRate(w.ctx, weight)
}

// frameBody weighs the events of a protobuf watch. A length of four bytes precedes each event
// (k8s.io/apimachinery/pkg/util/framer).
type frameBody struct {
	*countedBody
	ctx       context.Context //nolint:containedctx // the context of the request whose response this is
	frame     []byte          // the unread part of the current frame, including its length prefix
	lastError error
	// buffer contains the current frame. Most frames reuse it.
	buffer bytes.Buffer
}

// Read implements io.Reader.
func (f *frameBody) Read(p []byte) (int, error) {
	if len(f.frame) == 0 && f.lastError == nil {
		f.frame, f.lastError = f.readNextFrame()
	}
	if f.lastError != nil {
		return 0, f.lastError
	}
	n := copy(p, f.frame)
	if f.frame = f.frame[n:]; len(f.frame) == 0 {
		f.frame = nil
		f.releaseInFlight()
	}
	return n, nil
}

func (f *frameBody) readNextFrame() ([]byte, error) {
	const header = 4
	var head [header]byte
	if _, err := io.ReadFull(f.countedBody, head[:]); err != nil {
		return nil, err //nolint:wrapcheck // callers compare with io.EOF, so do not wrap it
	}
	length := int64(binary.BigEndian.Uint32(head[:]))
	if length > MaxWatchEventBytes {
		return nil, f.limiter.rejectTooLong(f.what, MaxWatchEventBytes)
	}
	// Beyond this size, the buffer grows with the data that arrives, because the announced length is
	// not trusted.
	const size = 16 << 10
	if f.buffer.Reset(); f.buffer.Cap() > size {
		f.buffer = bytes.Buffer{}
	}
	f.buffer.Grow(header + int(min(length, size)) + bytes.MinRead)
	f.buffer.Write(head[:])
	if _, err := io.CopyN(&f.buffer, f.countedBody, length); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	weight, err := weigh.WeighEvent(f.limiter.newObject, f.buffer.Bytes()[header:], f.limiter.ResponseBytes)
	switch {
	case errors.Is(err, weigh.ErrTooLarge):
		return nil, f.limiter.rejectTooLarge(f.what)
	case err != nil:
		return nil, f.limiter.rejectMalformed(f.what, err)
	}
	return f.buffer.Bytes(), f.waitForDecodeRate(f.ctx, weight)
}

// documentBody weighs the events of a JSON watch one by one.
type documentBody struct {
	*countedBody
	ctx       context.Context //nolint:containedctx // the context of the request whose response this is
	json      *weigh.JSONWeigher
	lastError error
}

// Read implements io.Reader.
func (d *documentBody) Read(p []byte) (int, error) {
	if d.lastError != nil {
		return 0, d.lastError
	}
	n, err := d.countedBody.Read(p)
	if failed := d.weighData(p[:n]); failed != nil {
		n, err = 0, failed
	}
	d.lastError = err
	return n, err
}

func (d *documentBody) weighData(data []byte) error {
	for len(data) > 0 {
		taken, ended, err := d.json.WeighBytes(data)
		if err != nil {
			return d.limiter.rejectMalformed(d.what, err)
		}
		data = data[taken:]
		weight, length := d.json.WeightAndLength()
		switch {
		case length > MaxWatchEventBytes:
			return d.limiter.rejectTooLong(d.what, MaxWatchEventBytes)
		case weight > d.limiter.ResponseBytes:
			return d.limiter.rejectTooLarge(d.what)
		case ended:
			d.json = weigh.NewJSONWeigher(d.limiter.shapes)
			d.releaseInFlight()
			if err := d.waitForDecodeRate(d.ctx, weight); err != nil {
				return err
			}
		}
	}
	return nil
}
