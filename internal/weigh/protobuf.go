package weigh

import (
	"bytes"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// protobufMagic is the prefix of Kubernetes' protobuf documents
// (k8s.io/apimachinery/pkg/runtime/serializer/protobuf).
var protobufMagic = []byte("k8s\x00")

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

// NewObjectFunc creates an empty object of a kind that the client decodes, like runtime.Scheme.New. It
// returns an error for other kinds.
type NewObjectFunc func(schema.GroupVersionKind) (runtime.Object, error)

// documentScale weighs one document. left is the remaining part of the limit.
type documentScale struct {
	kinds NewObjectFunc
	left  int64
}

// WeighProtobuf returns an upper bound for the memory in bytes that a document takes when a client
// decodes it. It returns ErrTooLarge above limit, and ErrMalformed if the data is not a document,
// has a kind that the client does not decode, or contains a quantity that is out of range.
func WeighProtobuf(kinds NewObjectFunc, document []byte, limit int64) (int64, error) {
	return weighWithin(kinds, limit, func(s *documentScale) error { return s.weighDocument(document) })
}

// WeighEvent works like WeighProtobuf, for one frame of a watch: an unwrapped event with a wrapped object.
func WeighEvent(kinds NewObjectFunc, frame []byte, limit int64) (int64, error) {
	return weighWithin(kinds, limit, func(s *documentScale) error {
		if err := s.addCost(int64(len(frame))); err != nil {
			return err
		}
		return s.weighMessage(frame, messageOfType[metav1.WatchEvent]())
	})
}

func weighWithin(kinds NewObjectFunc, limit int64, weigh func(*documentScale) error) (int64, error) {
	s := &documentScale{kinds: kinds, left: limit}
	err := weigh(s)
	return limit - s.left, err
}

func (s *documentScale) addCost(cost int64) error {
	if s.left -= cost; s.left < 0 {
		return ErrTooLarge
	}
	return nil
}

// weighDocument weighs a wrapped object of the kind in its TypeMeta.
func (s *documentScale) weighDocument(data []byte) error {
	if !bytes.HasPrefix(data, protobufMagic) {
		return fmt.Errorf("%w: not Kubernetes protobuf", ErrMalformed)
	}
	data = data[len(protobufMagic):]
	if err := s.addCost(int64(len(data))); err != nil {
		return err
	}
	kind, err := kindOfDocument(data)
	if err != nil {
		return err
	}
	object, err := s.kinds(kind)
	if err != nil {
		return fmt.Errorf("%w: kind %q was not requested", ErrMalformed, kind.Kind)
	}
	into := messageOfObject(object)
	if err := s.addCost(into.size); err != nil {
		return err
	}
	return visitFields(data, func(number protowire.Number, wire protowire.Type, value []byte) error {
		if number != unknownRaw || wire != protowire.BytesType {
			return nil
		}
		return s.weighMessage(value, into)
	})
}

// kindOfDocument reads the TypeMeta of a wrapped object. If a field is repeated, the last one counts.
func kindOfDocument(data []byte) (schema.GroupVersionKind, error) {
	var apiVersion, kind string
	err := visitFields(data, func(number protowire.Number, wire protowire.Type, value []byte) error {
		if number != unknownTypeMeta || wire != protowire.BytesType {
			return nil
		}
		return visitFields(value, func(number protowire.Number, wire protowire.Type, value []byte) error {
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

// weighMessage weighs the fields of a message. The caller counts the size of the message itself.
func (s *documentScale) weighMessage(data []byte, m *messageCost) error {
	return visitFields(data, func(number protowire.Number, wire protowire.Type, value []byte) error {
		f := m.fieldByNumber(number)
		if f == nil {
			return nil
		}
		if err := s.addCost(f.each + f.byte*int64(len(value))); err != nil {
			return err
		}
		switch {
		case wire != protowire.BytesType:
			return nil
		case f.quantity:
			if err := CheckText(string(value)); err != nil {
				return fmt.Errorf("%w: %w", ErrMalformed, err)
			}
			return nil
		case f.wrapped && bytes.HasPrefix(value, protobufMagic):
			return s.weighDocument(value)
		case f.message != nil:
			return s.weighMessage(value, f.message())
		}
		return nil
	})
}

// visitFields calls visit for each field of a message. value is empty unless the field is
// length-delimited.
func visitFields(data []byte, visit func(protowire.Number, protowire.Type, []byte) error) error {
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
