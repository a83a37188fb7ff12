package weigh

import (
	"bytes"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xylem-io/xylem/internal/quantity"
)

// magic is the prefix of Kubernetes' protobuf documents
// (k8s.io/apimachinery/pkg/runtime/serializer/protobuf).
var magic = []byte("k8s\x00")

// These are field numbers of runtime.Unknown, which wraps each document, and of its TypeMeta.
const (
	unknownTypeMeta = protowire.Number(1)
	unknownRaw      = protowire.Number(2)
	typeMetaVersion = protowire.Number(1)
	typeMetaKind    = protowire.Number(2)
)

var (
	// ErrMalformed is returned if a response does not match its content type.
	ErrMalformed = errors.New("the response is malformed")
	// ErrTooLarge is returned if a response would take more memory than its limit.
	ErrTooLarge = errors.New("the response is too large")
)

// Kinds creates an empty object of a kind that the client decodes, like runtime.Scheme.New. It
// returns an error for other kinds.
type Kinds func(schema.GroupVersionKind) (runtime.Object, error)

// scale weighs one document. left is the remaining part of the limit.
type scale struct {
	kinds Kinds
	left  int64
}

// Protobuf returns an upper bound for the memory in bytes that a document takes when a client
// decodes it. It returns ErrTooLarge above limit, and ErrMalformed if the data is not a document,
// has a kind that the client does not decode, or contains a quantity that is out of range.
func Protobuf(kinds Kinds, document []byte, limit int64) (int64, error) {
	return weighed(kinds, limit, func(s *scale) error { return s.document(document) })
}

// Event works like Protobuf, for one frame of a watch: an unwrapped event with a wrapped object.
func Event(kinds Kinds, frame []byte, limit int64) (int64, error) {
	return weighed(kinds, limit, func(s *scale) error {
		if err := s.add(int64(len(frame))); err != nil {
			return err
		}
		return s.message(frame, messageOf[metav1.WatchEvent]())
	})
}

func weighed(kinds Kinds, limit int64, weigh func(*scale) error) (int64, error) {
	s := &scale{kinds: kinds, left: limit}
	err := weigh(s)
	return limit - s.left, err
}

func (s *scale) add(cost int64) error {
	if s.left -= cost; s.left < 0 {
		return ErrTooLarge
	}
	return nil
}

// document weighs a wrapped object of the kind in its TypeMeta.
func (s *scale) document(data []byte) error {
	if !bytes.HasPrefix(data, magic) {
		return fmt.Errorf("%w: not Kubernetes protobuf", ErrMalformed)
	}
	data = data[len(magic):]
	if err := s.add(int64(len(data))); err != nil {
		return err
	}
	kind, err := kindOf(data)
	if err != nil {
		return err
	}
	object, err := s.kinds(kind)
	if err != nil {
		return fmt.Errorf("%w: kind %q was not requested", ErrMalformed, kind.Kind)
	}
	into := messageOfObject(object)
	if err := s.add(into.size); err != nil {
		return err
	}
	return fields(data, func(number protowire.Number, wire protowire.Type, value []byte) error {
		if number != unknownRaw || wire != protowire.BytesType {
			return nil
		}
		return s.message(value, into)
	})
}

// kindOf reads the TypeMeta of a wrapped object. If a field is repeated, the last one counts.
func kindOf(data []byte) (schema.GroupVersionKind, error) {
	var apiVersion, kind string
	err := fields(data, func(number protowire.Number, wire protowire.Type, value []byte) error {
		if number != unknownTypeMeta || wire != protowire.BytesType {
			return nil
		}
		return fields(value, func(number protowire.Number, wire protowire.Type, value []byte) error {
			switch {
			case wire != protowire.BytesType:
			case number == typeMetaVersion:
				apiVersion = string(value)
			case number == typeMetaKind:
				kind = string(value)
			}
			return nil
		})
	})
	return schema.FromAPIVersionAndKind(apiVersion, kind), err
}

// message weighs the fields of a message. The caller counts the size of the message itself.
func (s *scale) message(data []byte, m *message) error {
	return fields(data, func(number protowire.Number, wire protowire.Type, value []byte) error {
		f := m.field(number)
		if f == nil {
			return nil
		}
		if err := s.add(f.each + f.byte*int64(len(value))); err != nil {
			return err
		}
		switch {
		case wire != protowire.BytesType:
			return nil
		case f.quantity:
			if err := quantity.Check(string(value)); err != nil {
				return fmt.Errorf("%w: %w", ErrMalformed, err)
			}
			return nil
		case f.wrapped && bytes.HasPrefix(value, magic):
			return s.document(value)
		case f.message != nil:
			return s.message(value, f.message())
		}
		return nil
	})
}

// fields calls visit for each field of a message. value is empty unless the field is
// length-delimited.
func fields(data []byte, visit func(protowire.Number, protowire.Type, []byte) error) error {
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(n))
		}
		data = data[n:]
		var value []byte
		if wire == protowire.BytesType {
			value, n = protowire.ConsumeBytes(data)
		} else {
			n = protowire.ConsumeFieldValue(number, wire, data)
		}
		if n < 0 {
			return fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(n))
		}
		data = data[n:]
		if err := visit(number, wire, value); err != nil {
			return err
		}
	}
	return nil
}
