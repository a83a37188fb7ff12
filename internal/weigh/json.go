package weigh

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/xylem-io/xylem/internal/quantity"
)

const (
	// jsonObject is the memory in bytes for each object or null in a JSON document. The object may
	// be an element in a list of the largest type in Kubernetes' APIs.
	jsonObject = 4 << 10
	// jsonValue is the memory in bytes for each list, string and number: a header, and its entry in
	// a map or list.
	jsonValue = 128
	// jsonDepth is the maximum nesting of objects and lists. Kubernetes' own objects nest about
	// twenty levels deep.
	jsonDepth = 100
)

// keyLimit is the number of bytes of a key that JSON keeps. It exceeds the length of all field names,
// even if each character is escaped.
const keyLimit = 512

// JSON weighs documents while they are read, and checks their quantities. Create it with NewJSON.
type JSON struct {
	weight        int64
	text, escaped bool
	started       bool
	length        int64

	root *shape
	// path contains the open objects and lists.
	path []container
	// value is the shape of the current value, and key means that a key follows instead.
	value *shape
	key   bool
	// kept is the current key or quantity. It is kept only up to limit bytes.
	kept  []byte
	limit int
}

// container is an open object or list.
type container struct {
	shape *shape
	list  bool
}

// NewJSON returns a JSON for documents that are decoded to types of the shapes' scheme.
func NewJSON(shapes *Shapes) *JSON { return &JSON{root: shapes.root, value: shapes.root} }

// Weigh consumes the next bytes of a document, and reports whether the document ended. It stops
// at the end, because further bytes belong to the next document: taken is the number of bytes
// consumed.
func (j *JSON) Weigh(data []byte) (taken int, ended bool, err error) {
	for i, c := range data {
		j.length++
		if j.text {
			j.weight++
			err = j.character(c)
		} else {
			err = j.structure(c)
		}
		if err != nil {
			return i + 1, false, err
		}
		if j.started && len(j.path) == 0 && !j.text {
			return i + 1, true, nil
		}
	}
	return len(data), false, nil
}

// Weight returns the weight and the length of the document so far, both in bytes.
func (j *JSON) Weight() (weight, length int64) { return j.weight, j.length }

func (j *JSON) character(c byte) error {
	switch {
	case j.escaped:
		j.escaped = false
	case c == '\\':
		j.escaped = true
	case c == '"':
		j.text = false
		if !j.key {
			return j.quantity()
		}
		return nil
	}
	j.keep(c)
	return nil
}

// keep adds a character to the current key or quantity.
func (j *JSON) keep(c byte) {
	if len(j.kept) < j.limit {
		j.kept = append(j.kept, c)
	}
}

// begin begins a key or a value.
func (j *JSON) begin() {
	j.kept, j.limit = j.kept[:0], 0
	switch {
	case j.key && j.path[len(j.path)-1].shape != nil:
		j.limit = keyLimit
	case !j.key && j.value != nil && j.value.quantity:
		j.limit = quantity.LengthLimit + 1
	}
}

// quantity checks the current value at its end.
func (j *JSON) quantity() error {
	err := quantity.Check(string(j.kept))
	if j.kept, j.limit = j.kept[:0], 0; err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// name returns the current key.
func (j *JSON) name() string {
	if !bytes.ContainsRune(j.kept, '\\') {
		return string(j.kept)
	}
	var name string
	if json.Unmarshal(slices.Concat([]byte{'"'}, j.kept, []byte{'"'}), &name) != nil {
		return "" // invalid, or longer than each known name
	}
	return name
}

func (j *JSON) structure(c byte) error {
	switch c {
	case '"':
		j.text = true
		j.weight += jsonValue
		j.begin()
	case '{', 'n': // the value is an object or null
		j.weight += jsonObject
	case ',', '[':
		j.weight += jsonValue
	}
	switch c {
	case '{', '[':
		return j.open(c == '[')
	case ':':
		if n := len(j.path); n > 0 {
			j.value, j.key = j.path[n-1].shape.at(j.name()), false
		}
		j.begin()
	case ',', '}', ']':
		if err := j.quantity(); err != nil {
			return err
		}
		if c != ',' {
			return j.close()
		}
		j.next()
	case '"', ' ', '\t', '\r', '\n':
	default: // a number or a literal
		j.keep(c)
	}
	return nil
}

func (j *JSON) open(list bool) error {
	j.started = true
	if j.path = append(j.path, container{j.value, list}); len(j.path) > jsonDepth {
		return fmt.Errorf("%w: it is nested more than %d levels deep", ErrMalformed, jsonDepth)
	}
	j.next()
	return nil
}

func (j *JSON) close() error {
	if len(j.path) == 0 {
		return fmt.Errorf("%w: not JSON", ErrMalformed)
	}
	j.path = j.path[:len(j.path)-1]
	j.value, j.key = nil, false
	return nil
}

// next prepares for the next key or element.
func (j *JSON) next() {
	if n := len(j.path); n > 0 {
		top := j.path[n-1]
		if j.key = !top.list; top.list {
			j.value = top.shape
		}
	}
	j.begin()
}
