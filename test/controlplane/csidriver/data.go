package csidriver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteData overwrites the content of a volume's disk, as a Pod would. dir is the driver's
// directory.
func WriteData(dir, volumeID, data string) error {
	disk := filepath.Join(VolumesDir(dir), volumeID)
	if _, err := os.Stat(disk); err != nil {
		return fmt.Errorf("write to volume %s: %w", volumeID, err)
	}
	if err := os.WriteFile(filepath.Join(disk, dataFile), []byte(data), 0o600); err != nil {
		return fmt.Errorf("write to volume %s: %w", volumeID, err)
	}
	return nil
}

// ReadData returns the content of a volume's disk.
func ReadData(dir, volumeID string) (string, error) {
	data, err := readData(filepath.Join(VolumesDir(dir), volumeID))
	if err != nil {
		return "", fmt.Errorf("read volume %s: %w", volumeID, err)
	}
	return data, nil
}

func readData(disk string) (string, error) {
	content, err := os.ReadFile(filepath.Join(disk, dataFile)) //nolint:gosec // Below the driver's own directory.
	return string(content), err
}

// fill creates the disk in directory dst: a copy of the volume or snapshot source, or an empty
// disk if source is empty. It returns the identifier of the data.
func (s *store) fill(dst, source, id string) (string, error) {
	if err := os.RemoveAll(dst); err != nil { // Left behind by an earlier failure.
		return "", err
	}
	if err := os.Mkdir(dst, 0o750); err != nil {
		return "", err
	}
	if source == "" {
		if err := os.Mkdir(filepath.Join(dst, filesDir), 0o750); err != nil {
			return "", err
		}
		return id, os.WriteFile(filepath.Join(dst, dataFile), []byte(id), 0o600)
	}
	from := filepath.Join(s.dir, source)
	if _, ok := s.snapshots[source]; ok {
		from = filepath.Join(s.snapshotsDir, source)
	}
	if err := copyTree(dst, from); err != nil {
		return "", fmt.Errorf("copy %s: %w", source, err)
	}
	return readData(dst)
}

// copyTree copies the content of directory from to dst, except the driver's own record.
func copyTree(dst, from string) error {
	return fs.WalkDir(os.DirFS(from), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == "." || path == recordFile || path == recordFile+".new":
			return nil
		case entry.IsDir():
			return os.Mkdir(filepath.Join(dst, path), 0o750)
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file", path)
		}
		return copySparse(filepath.Join(dst, path), filepath.Join(from, path))
	})
}

// holeBytes is the minimum size of a hole that copySparse preserves.
const holeBytes = 64 << 10

// copySparse copies a file and skips blocks of zeros, so that holes stay holes.
func copySparse(dst, from string) (err error) {
	in, err := os.Open(from) //nolint:gosec // Below the driver's own directory.
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(dst, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) //nolint:gosec // Likewise.
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	chunk, zeros := make([]byte, holeBytes), make([]byte, holeBytes)
	var size int64
	for {
		n, err := io.ReadFull(in, chunk)
		if n > 0 && !bytes.Equal(chunk[:n], zeros[:n]) {
			if _, err := out.WriteAt(chunk[:n], size); err != nil {
				return err
			}
		}
		size += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return out.Truncate(size)
		}
		if err != nil {
			return err
		}
	}
}
