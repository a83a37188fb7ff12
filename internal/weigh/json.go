package weigh

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
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

// keyLimit is the number of bytes of a key that JSONWeigher keeps. It exceeds the length of all field names,
// even if each character is escaped.
const keyLimit = 512

// JSONWeigher weighs documents while they are read, and checks their quantities. Create it with NewJSONWeigher.
type JSONWeigher struct {
	weight        int64
	text, escaped bool
	started       bool
	length        int64

	root *valueShape
	// path contains the open objects and lists.
	path []jsonContainer
	// value is the shape of the current value, and key means that a key follows instead.
	value *valueShape
	key   bool
	// kept is the current key or quantity. It is kept only up to limit bytes.
	kept  []byte
	limit int
}

// jsonContainer is an open object or list.
type jsonContainer struct {
	shape *valueShape
	list  bool
}

// NewJSONWeigher returns a JSONWeigher for documents that are decoded to types of the shapes' scheme.
func NewJSONWeigher(shapes *QuantityShapes) *JSONWeigher {
	return &JSONWeigher{root: shapes.root, value: shapes.root}
}

// WeighBytes consumes the next bytes of a document, and reports whether the document ended. It stops
// at the end, because further bytes belong to the next document: taken is the number of bytes
// consumed.
func (j *JSONWeigher) WeighBytes(data []byte) (taken int, ended bool, err error) {
	for i, c := range data {
		j.length++
		if j.text {
			j.weight++
			err = j.readCharacter(c)
		} else {
			err = j.readStructure(c)
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

// WeightAndLength returns the weight and the length of the document so far, both in bytes.
func (j *JSONWeigher) WeightAndLength() (weight, length int64) { return j.weight, j.length }

func (j *JSONWeigher) readCharacter(c byte) error {
	switch {
	case j.escaped:
		j.escaped = false
	case c == '\\':
		j.escaped = true
	case c == '"':
		j.text = false
		if !j.key {
			return j.checkQuantity()
		}
		return nil
	}
	j.keepCharacter(c)
	return nil
}

// keepCharacter adds a character to the current key or quantity.
func (j *JSONWeigher) keepCharacter(c byte) {
	if len(j.kept) < j.limit {
		j.kept = append(j.kept, c)
	}
}

// beginToken begins a key or a value.
func (j *JSONWeigher) beginToken() {
	j.kept, j.limit = j.kept[:0], 0
	switch {
	case j.key && j.path[len(j.path)-1].shape != nil:
		j.limit = keyLimit
	case !j.key && j.value != nil && j.value.quantity:
		j.limit = LengthLimit + 1
	}
}

// checkQuantity checks the current value at its end.
func (j *JSONWeigher) checkQuantity() error {
	err := CheckText(string(j.kept))
	if j.kept, j.limit = j.kept[:0], 0; err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// currentKey returns the current key.
func (j *JSONWeigher) currentKey() string {
	if !bytes.ContainsRune(j.kept, '\\') {
		return string(j.kept)
	}
	var name string
	if json.Unmarshal(slices.Concat([]byte{'"'}, j.kept, []byte{'"'}), &name) != nil {
		return "" // invalid, or longer than each known name
	}
	return name
}

func (j *JSONWeigher) readStructure(c byte) error {
	switch c {
	case '"':
		j.text = true
		j.weight += jsonValue
		j.beginToken()
	case '{', 'n': // the value is an object or null
		j.weight += jsonObject
	case ',', '[':
		j.weight += jsonValue
	}
	switch c {
	case '{', '[':
		return j.openContainer(c == '[')
	case ':':
		if n := len(j.path); n > 0 {
			j.value, j.key = j.path[n-1].shape.shapeOfKey(j.currentKey()), false
		}
		j.beginToken()
	case ',', '}', ']':
		if err := j.checkQuantity(); err != nil {
			return err
		}
		if c != ',' {
			return j.closeContainer()
		}
		j.expectNext()
	case '"', ' ', '\t', '\r', '\n':
	default: // a number or a literal
		j.keepCharacter(c)
	}
	return nil
}

func (j *JSONWeigher) openContainer(list bool) error {
	j.started = true
	if j.path = append(j.path, jsonContainer{j.value, list}); len(j.path) > jsonDepth {
		return fmt.Errorf("%w: it is nested more than %d levels deep", ErrMalformed, jsonDepth)
	}
	j.expectNext()
	return nil
}

func (j *JSONWeigher) closeContainer() error {
	if len(j.path) == 0 {
		return fmt.Errorf("%w: not JSON", ErrMalformed)
	}
	j.path = j.path[:len(j.path)-1]
	j.value, j.key = nil, false
	return nil
}

// expectNext prepares for the next key or element.
func (j *JSONWeigher) expectNext() {
	if n := len(j.path); n > 0 {
		top := j.path[n-1]
		if j.key = !top.list; top.list {
			j.value = top.shape
		}
	}
	j.beginToken()
}
