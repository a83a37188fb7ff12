package transfer

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func shellIn(ctx context.Context, t *testing.T, volume, script string, in []byte, args ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(ctx, "sh", append([]string{"-c", script, "move"}, args...)...)
	c.Env, c.Stdin = append(os.Environ(), "VOLUME="+volume), bytes.NewReader(in)
	var complaints bytes.Buffer
	c.Stderr = &complaints
	out, err := c.Output()
	if err != nil {
		t.Logf("%v: %s", err, complaints.String())
	}
	return string(out), err
}

func TestScriptsFail(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	for name, script := range map[string]string{
		"send": sendFiles, "receive": receiveFiles, "sum": sumFiles, "send a device": sendDevice, "sum a device": sumDevice, "read the size of a device": deviceBytes,
		"the first program in a pipe fails": "set -eu\n" + pipedScript("{ echo some; false; }", "cat"), "the last program in a pipe fails": "set -eu\n" + pipedScript("true", "false"),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := shellIn(t.Context(), t, gone, script, nil, "1"); err == nil {
				t.Error("the script succeeded, want an error")
			}
		})
	}
	t.Run("VOLUME is empty", func(t *testing.T) {
		if _, err := shellIn(t.Context(), t, "", receiveFiles, nil); err == nil {
			t.Error("the script succeeded, want an error")
		}
	})
}

func TestReceivingCleansAndKeepsLostAndFound(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(from, "new"), filepath.Join(to, "left"), filepath.Join(to, ".hidden")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{filepath.Join(from, "lost+found"), filepath.Join(to, "lost+found", "inner"), filepath.Join(from, "deep", "lost+found")} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	archive, err := shellIn(t.Context(), t, from, sendFiles, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shellIn(t.Context(), t, to, receiveFiles, framed(t, archive)); err != nil {
		t.Fatal(err)
	}
	var got []string
	entries, err := os.ReadDir(to)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff([]string{"deep", "lost+found", "new"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(to, "deep", "lost+found")); err != nil {
		t.Error("a user's directory named lost+found was not copied:", err)
	}
	sums := make([]string, 2)
	for i, dir := range []string{from, to} {
		if sums[i], err = shellIn(t.Context(), t, dir, sumFiles, nil); err != nil {
			t.Fatal(err)
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("the checksums differ: %v", sums)
	}
	if err := os.Chmod(filepath.Join(to, "new"), 0o640); err != nil {
		t.Fatal(err)
	}
	if after, err := shellIn(t.Context(), t, to, sumFiles, nil); err != nil || after == sums[1] {
		t.Errorf("the checksum ignores file modes: %v", err)
	}
}

// framed returns content in frames.
func framed(t *testing.T, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	f := &framer{to: &out}
	for _, part := range []string{content[:len(content)/3], content[len(content)/3:]} {
		if n, err := f.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("wrote %d of %d bytes: %v", n, len(part), err)
		}
	}
	if err := f.endFrames(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A receiver that does not get the end of the data must fail, even if what it got is complete in
// itself.
func TestReceivingRequiresTheLastFrame(t *testing.T) {
	content := strings.Repeat("0123456789abcdef", 5*frameSize/32) // two and a half frames
	whole := framed(t, content)
	for name, tc := range map[string]struct {
		in    []byte
		fails bool
	}{
		"all frames":                         {whole, false},
		"the last frame is missing":          {bytes.TrimSuffix(whole, []byte("end\n")), true},
		"the input ends within a frame":      {whole[:frameSize+frameSize/2], true},
		"the input ends after the first one": {whole[:len("1048576\n")+frameSize], true},
		"no input":                           {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			device := filepath.Join(t.TempDir(), "device")
			_, err := shellIn(t.Context(), t, device, receiveDevice, tc.in)
			if (err != nil) != tc.fails {
				t.Errorf("error is %v, want a failure: %t", err, tc.fails)
			}
			if tc.fails {
				return
			}
			got, err := os.ReadFile(device)
			if err != nil || string(got) != content {
				t.Errorf("received %d bytes, want the %d bytes that were sent (error %v)", len(got), len(content), err)
			}
		})
	}
}

// The input stays open until the script has ended, whether it succeeds or fails.
func TestReceivingEndsWithOpenInput(t *testing.T) {
	for name, tc := range map[string]struct {
		volume string
		fails  bool
	}{
		"all frames":                   {volume: filepath.Join(t.TempDir(), "device")},
		"the device cannot be written": {volume: filepath.Join(t.TempDir(), "missing", "device"), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			in, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _, _ = in.Close(), out.Close() }()
			c := exec.CommandContext(t.Context(), "sh", "-c", receiveDevice, "move")
			c.Env, c.Stdin = append(os.Environ(), "VOLUME="+tc.volume), in
			if _, err := out.Write(framed(t, "some data")); err != nil {
				t.Fatal(err)
			}
			if err := c.Run(); (err != nil) != tc.fails {
				t.Errorf("error is %v, want a failure: %t", err, tc.fails)
			}
		})
	}
}
