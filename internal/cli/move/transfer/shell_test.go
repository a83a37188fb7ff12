package transfer

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"testing"
)

func TestTail(t *testing.T) {
	end := &tail{}
	for _, s := range []string{"...", "\r1048576 bytes (1.0 MB, 1.0 MiB) copied, 1 s, 1 MB/s\n", "1+0 records in\n1+0 records out\n", "dd: error writing 'x':\n No space left on device\n"} {
		if n, err := end.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	if want := ": dd: error writing 'x': No space left on device"; end.textOfTail() != want {
		t.Errorf("got %q, want %q", end.textOfTail(), want)
	}
	if got := (&tail{end: []byte("....")}).textOfTail(); got != "" {
		t.Errorf("dots are not removed: %q", got)
	}
	long := &tail{}
	_, _ = long.Write(bytes.Repeat([]byte("x"), 5*tailBytes))
	if len(long.end) != tailBytes {
		t.Errorf("kept %d bytes, want exactly tailBytes", len(long.end))
	}
}

func TestFinished(t *testing.T) {
	for said, want := range map[string]bool{
		"":                                   false,
		"...\n" + finished:                   false, // cut off
		finished + "\nmore\n":                false,
		"1+0 records in\n" + finished + "\n": true,
	} {
		out := &tail{}
		_, _ = out.Write([]byte(said))
		if got := out.finishedLines(); got != want {
			t.Errorf("after %q, finished is %t, want %t", said, got, want)
		}
	}
}

// The output is complete if it ends with the mark, in whatever parts it arrives, and if the script
// has reported its end.
func TestOutput(t *testing.T) {
	content := strings.Repeat("0123456789", 20)
	for size := 1; size < len(content); size += 7 {
		var got bytes.Buffer
		received := 0
		o := newOutput(&got, func() { received++ })
		sent := []byte(content + o.mark)
		for len(sent) > 0 {
			n := min(size, len(sent))
			if wrote, err := o.Write(sent[:n]); wrote != n || err != nil {
				t.Fatalf("wrote %d of %d bytes: %v", wrote, n, err)
			}
			sent = sent[n:]
			if o.receivedOutput() || received > 0 {
				t.Fatal("the output counts as complete before the script has reported its end")
			}
		}
		_, _ = o.complaints.Write([]byte("1+0 records in\n" + finished + "\n"))
		if !o.receivedOutput() || received != 1 {
			t.Errorf("parts of %d bytes: received is %t, and was reported %d times", size, o.receivedOutput(), received)
		}
		if got.String() != content {
			t.Errorf("parts of %d bytes: got %q, want %q", size, got.String(), content)
		}
	}
	for name, sent := range map[string]func(*output) string{
		"no mark":              func(*output) string { return content },
		"half of the mark":     func(o *output) string { return content + o.mark[:len(o.mark)/2] },
		"data after the mark":  func(o *output) string { return o.mark + content },
		"another script's one": func(*output) string { return content + newOutput(nil, nil).mark },
	} {
		t.Run(name, func(t *testing.T) {
			o := newOutput(io.Discard, func() {})
			_, _ = o.complaints.Write([]byte(finished + "\n"))
			if _, err := o.Write([]byte(sent(o))); err != nil || o.receivedOutput() {
				t.Errorf("received is %t, error is %v", o.receivedOutput(), err)
			}
		})
	}
}

// The script must not end before its client has received its output.
func TestAcknowledgedScriptWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		fails  bool
	}{
		"success": {script: "set -eu\necho some"}, "failure": {"set -eu\nfalse", true},
	} {
		t.Run(name, func(t *testing.T) {
			in := newScriptInput()
			var got bytes.Buffer
			o := newOutput(&got, func() { _ = in.w.Close() })
			c := exec.CommandContext(t.Context(), "sh", "-c", acknowledged(tc.script, o.mark))
			c.Stdin, c.Stdout, c.Stderr = in, o, &o.complaints
			if tc.fails {
				_ = in.w.Close()
			}
			if err := c.Run(); (err != nil) != tc.fails || o.receivedOutput() == tc.fails {
				t.Errorf("error is %v, received is %t, want a failure: %t", err, o.receivedOutput(), tc.fails)
			}
			if !tc.fails && got.String() != "some\n" {
				t.Errorf("got %q", got.String())
			}
		})
	}
}
