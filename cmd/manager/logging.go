package main

import (
	"slices"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
)

// bodyLogLevel is the lowest level at which client-go logs the bodies of requests and responses,
// including Secrets (k8s.io/client-go/rest, logBody).
const bodyLogLevel = zapcore.Level(-8)

// limitVerbosity limits the requested verbosity, so that client-go does not log bodies.
func limitVerbosity(asked zapcore.LevelEnabler) zapcore.LevelEnabler {
	if asked == nil || !asked.Enabled(bodyLogLevel) {
		return asked
	}
	return bodyLogLevel + 1
}

// lazySink keeps values and encodes them only when a line is logged. Each reconcile creates a
// logger with several values, but most reconciles log nothing. Encoding the values each time took
// 5% of the manager's CPU time.
type lazySink struct {
	logr.LogSink
	values []any
}

func newLazyLogger(log logr.Logger) logr.Logger { return logr.New(lazySink{LogSink: log.GetSink()}) }

// Init accounts for the stack frame that this sink adds.
func (s lazySink) Init(info logr.RuntimeInfo) {
	info.CallDepth++
	s.LogSink.Init(info)
}

func (s lazySink) sinkWithValues() logr.LogSink {
	if len(s.values) == 0 {
		return s.LogSink
	}
	return s.LogSink.WithValues(s.values...)
}

func (s lazySink) Info(level int, message string, values ...any) {
	s.sinkWithValues().Info(level, message, values...)
}

func (s lazySink) Error(err error, message string, values ...any) {
	s.sinkWithValues().Error(err, message, values...)
}

func (s lazySink) WithValues(values ...any) logr.LogSink {
	return lazySink{s.LogSink, append(slices.Clip(s.values), values...)}
}

func (s lazySink) WithName(name string) logr.LogSink {
	return lazySink{s.LogSink.WithName(name), s.values}
}

// WithCallDepth implements logr.CallDepthLogSink.
func (s lazySink) WithCallDepth(depth int) logr.LogSink {
	if sink, ok := s.LogSink.(logr.CallDepthLogSink); ok {
		return lazySink{sink.WithCallDepth(depth), s.values}
	}
	return s
}
