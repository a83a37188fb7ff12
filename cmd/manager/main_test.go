package main

import (
	"testing"

	"go.uber.org/zap/zapcore"
)

func TestDiscreet(t *testing.T) {
	if discreet(nil) != nil {
		t.Error("a level, though none was asked for")
	}
	for asked, want := range map[zapcore.Level]zapcore.Level{zapcore.InfoLevel: zapcore.InfoLevel, zapcore.DebugLevel: zapcore.DebugLevel, -5: -5, -7: -7, -8: -7, -10: -7} {
		if got := discreet(asked); got != want {
			t.Errorf("%d became %v, want %d", asked, got, want)
		}
	}
}
