package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

const (
	movedApp  = "diary"
	diaryData = "dear diary"
)

// killedAt is the beginning of the plugin's line after which the demo kills it: the claim is being
// deleted, and the data is in both members.
const killedAt = "Comparing the old disk again"

// move moves a claim with its data to the other member. It kills the command and runs it again.
func (d *demo) move(ctx context.Context) error {
	d.out.section("Moving a claim with its data to the other member, despite a kill -9")
	if out, err := exec.CommandContext(ctx, "tar", "--version").Output(); err != nil || !bytes.Contains(out, []byte("GNU tar")) {
		d.out.line("   skipped: this machine lacks GNU tar, which the Pods' commands run")
		return nil
	}
	d.out.line("   (containers are simulated: exec runs the Pods' commands on this machine, on")
	d.out.line("   the members' disks)")
	d.out.line("   (the Pod prefers %s)", pinned)
	if _, err := d.scene(ctx, true, apply(movedApp+".yaml"), d.claimBound(d.host, space, movedApp), d.podRunning(d.host, space, movedApp)); err != nil {
		return err
	}
	from, to := d.members[0], d.members[1]
	if err := d.writeDisk(from, movedApp, diaryData); err != nil {
		return err
	}
	old, err := d.diskOf(from, movedApp)
	if err != nil {
		return err
	}
	if err := d.do(ctx, d.host, "-n", space, "scale", "deployment/"+movedApp, "--replicas=0"); err != nil {
		return err
	}
	if err := d.await(ctx, "the Pod of "+movedApp+" gone", func(context.Context) (string, error) {
		return d.placeOf(movedApp), nil
	}); err != nil {
		return err
	}
	command := []string{"xylem", "move", "pvc", movedApp, "--to", to.Name(), "-n", space, "--yes"}
	killed, err := d.stream(ctx, killedAt, command...)
	if err != nil {
		return err
	}
	deleting, err := d.kubectl(ctx, d.host, "get", "pvc", movedApp, "-n", space, "-o", "jsonpath={.metadata.deletionTimestamp}")
	if err != nil {
		return err
	}
	killed = killed && deleting != ""
	d.out.line("   %s", d.out.style(yellow, "The demo killed the command (kill -9). The same command continues the move:"))
	if _, err := d.stream(ctx, "", command...); err != nil {
		return err
	}
	return d.checkMoved(ctx, old, killed)
}

// checkMoved checks that the Pod has its data in the other member, and deletes both disks. old is
// the directory of the old disk.
func (d *demo) checkMoved(ctx context.Context, old string, killed bool) error {
	from, to := d.members[0], d.members[1]
	scale := []string{"-n", space, "scale", "deployment/" + movedApp, "--replicas=1"}
	if _, err := d.scene(ctx, true, scale, d.replicasRunning(movedApp, 1)); err != nil {
		return err
	}
	data, err := d.readDisk(to, movedApp)
	if err != nil {
		return err
	}
	d.checks.equal("move: killed while the claim was being deleted, and continued", true, killed, "by running the same command again")
	d.checks.equal("move: the Pod runs where the data is now", to.Name(), d.placeOf(movedApp), "in "+to.Name()+", although "+from.Name()+" was preferred")
	d.checks.equal("move: the new disk has the data", diaryData, data, data)
	_, err = os.Stat(old)
	d.checks.equal("move: the old disk is kept until the user deletes it", nil, err, "")
	if _, err := d.stream(ctx, "", "xylem", "move", "pvc", movedApp, "--delete-source", "-n", space, "--yes"); err != nil {
		return err
	}
	if err := d.await(ctx, "the old disk deleted", func(context.Context) (string, error) {
		if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
			return "it still exists", err
		}
		return "", nil
	}); err != nil {
		return err
	}
	data, err = d.readDisk(to, movedApp)
	if err != nil {
		return err
	}
	d.checks.equal("move: --delete-source deletes only the old disk", diaryData, data, "the new one still has the data")
	return d.clear(ctx, movedApp, "move: the new disk is deleted with its claim")
}

// stream runs kubectl in the host, prints its output as it appears, and kills it after a line with
// the prefix, unless the prefix is empty. It reports whether it has killed kubectl.
func (d *demo) stream(ctx context.Context, prefix string, args ...string) (killed bool, err error) {
	d.prompt(d.host, args...)
	cmd := d.kubectlCommand(ctx, d.host, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		return false, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		for _, line := range wrap(lines.Text(), textWidth) {
			d.out.line("   %s", line)
		}
		if prefix != "" && strings.HasPrefix(lines.Text(), prefix) {
			killed = true
			if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
				return false, err
			}
		}
	}
	_, _ = io.Copy(io.Discard, out)
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return killed, context.Cause(ctx)
	case err != nil && !killed:
		return false, fmt.Errorf("%s: %w: %s", commandLine(d.host, args), err, strings.TrimSpace(complaints.String()))
	}
	return killed, nil
}
