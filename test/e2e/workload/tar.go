package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// archive implements the parts of tar that kubectl cp needs: "cf - FILE" writes a file to the
// output, and "xmf - -C DIRECTORY" writes the files of the input to a directory.
func archive(args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("tar %v: not supported", args)
	}
	if strings.Contains(args[0], "c") {
		return pack(args[len(args)-1])
	}
	directory := "/"
	if i := slices.Index(args, "-C"); i >= 0 && i+1 < len(args) {
		directory = args[i+1]
	}
	return unpack(directory)
}

func pack(file string) error {
	content, err := os.ReadFile(file) //nolint:gosec // the file that kubectl cp names
	if err != nil {
		return err
	}
	w := tar.NewWriter(os.Stdout)
	if err := w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(file, "/"), Mode: 0o600, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err = w.Write(content)
	return errors.Join(err, w.Close())
}

func unpack(directory string) error {
	r := tar.NewReader(os.Stdin)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		//nolint:gosec // below the directory, with any name
		if err := os.WriteFile(filepath.Join(directory, filepath.Clean("/"+header.Name)), content, 0o600); err != nil {
			return err
		}
	}
}
