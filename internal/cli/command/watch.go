package command

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// watchEvery is the interval at which --watch reads an object.
const watchEvery = 2 * time.Second

// Watch reads and prints an object. If watch is set, it does so until the context ends, and prints the
// object again whenever it changes. It compares the object, not the output, whose ages always increase.
func Watch[T runtime.Object](ctx context.Context, env *Env, watch bool, read func() (T, error), show func(T) error) error {
	var before []byte
	for {
		obj, err := read()
		if err != nil {
			return err
		}
		now, err := json.Marshal(obj)
		if err != nil {
			return fmt.Errorf("encode the state: %w", err)
		}
		if string(now) != string(before) {
			before = now
			if err := show(obj); err != nil {
				return err
			}
		}
		if !watch {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-env.Clock.After(watchEvery):
		}
	}
}
