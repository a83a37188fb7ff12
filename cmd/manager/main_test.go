package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func TestDiscreet(t *testing.T) {
	if limitVerbosity(nil) != nil {
		t.Error("got a level, although none was requested")
	}
	for asked, want := range map[zapcore.Level]zapcore.Level{zapcore.InfoLevel: zapcore.InfoLevel, zapcore.DebugLevel: zapcore.DebugLevel, -5: -5, -7: -7, -8: -7, -10: -7} {
		if got := limitVerbosity(asked); got != want {
			t.Errorf("level %d became %v, want %d", asked, got, want)
		}
	}
}

// TestLazyValues checks that a line contains only the values of its own logger.
func TestLazyValues(t *testing.T) {
	var out bytes.Buffer
	log := newLazyLogger(zap.New(zap.WriteTo(&out))).WithName("manager").WithValues("controller", "root_pv")
	one, two := log.WithValues("request", "one"), log.WithValues("request", "two")
	one.Error(errors.New("refused"), "reconcile", "try", 3)
	two.WithCallDepth(1).V(0).Info("done")
	two.V(9).Info("not logged")
	decoder := json.NewDecoder(&out)
	for _, want := range []map[string]any{
		{"logger": "manager", "controller": "root_pv", "request": "one", "error": "refused", "try": 3.0, "msg": "reconcile"},
		{"logger": "manager", "controller": "root_pv", "request": "two", "error": nil, "msg": "done"},
	} {
		got := map[string]any{}
		if err := decoder.Decode(&got); err != nil {
			t.Fatal(err)
		}
		for key, value := range want {
			if got[key] != value {
				t.Errorf("%s is %v, want %v", key, got[key], value)
			}
		}
	}
	if decoder.More() {
		t.Error("logged a line above the enabled level")
	}
}
