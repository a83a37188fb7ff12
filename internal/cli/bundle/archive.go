package bundle

import (
	"archive/tar"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"path"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/wording"
)

// missingFile is the file that lists what could not be read.
const missingFile = "missing.yaml"

// bundle writes the archive. It redacts all content.
type bundle struct {
	zip  *gzip.Writer
	tar  *tar.Writer
	name string
	now  time.Time
	// known contains the credentials that the plugin itself has used.
	known   knownSecrets
	missing []inspect.Missing
	// files and objects count what the archive contains.
	files   int
	objects int
}

func newBundle(w io.Writer, name string, now time.Time, secrets [][]byte) *bundle {
	zip := gzip.NewWriter(w)
	b := &bundle{zip: zip, tar: tar.NewWriter(zip), name: name, now: now}
	for _, secret := range secrets {
		b.rememberCredentials(secret)
	}
	return b
}

// rememberCredentials records a kubeconfig's credentials, which write then removes from every file.
func (b *bundle) rememberCredentials(kubeconfig []byte) {
	b.known.addSecret(string(kubeconfig))
	b.known.addSecret(base64.StdEncoding.EncodeToString(kubeconfig))
	config, err := access.ParseKubeconfig(kubeconfig, true)
	if err != nil {
		return
	}
	b.known.addSecret(config.BearerToken)
	for _, data := range [][]byte{config.CertData, config.KeyData} {
		b.known.addSecret(base64.StdEncoding.EncodeToString(data))
	}
}

// recordMissing records what could not be read. It redacts the error, because the API server's message may
// contain secrets.
func (b *bundle) recordMissing(cluster, what string, err error) {
	b.missing = append(b.missing, inspect.Missing{What: what, Cluster: cluster, Why: redactText(err.Error())})
}

// writeText writes a text file, without credentials.
func (b *bundle) writeText(file, content string) error { return b.writeFile(file, redactText(content)) }

// writeList writes redacted objects.
func (b *bundle) writeList(file string, objects []*unstructured.Unstructured) error {
	if len(objects) == 0 {
		return nil
	}
	kept := make([]any, 0, len(objects))
	for _, obj := range objects {
		kept = append(kept, redactObject(obj))
	}
	b.objects += len(objects)
	return b.writeYAML(file, map[string]any{"apiVersion": "v1", "kind": "List", "items": kept})
}

// writeYAML writes a value that is already redacted, as YAML.
func (b *bundle) writeYAML(file string, v any) error {
	content, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return b.writeFile(file, string(content))
}

// writeFile writes a file, without the known credentials.
func (b *bundle) writeFile(file, content string) error {
	content = b.known.removeSecrets(content)
	header := &tar.Header{Name: path.Join(b.name, file), Mode: 0o600, Size: int64(len(content)), ModTime: b.now, Typeflag: tar.TypeReg}
	if err := b.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if _, err := io.WriteString(b.tar, content); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	b.files++
	return nil
}

func (b *bundle) closeArchive() error {
	if err := b.tar.Close(); err != nil {
		return fmt.Errorf("close the archive: %w", err)
	}
	if err := b.zip.Close(); err != nil {
		return fmt.Errorf("close the archive: %w", err)
	}
	return nil
}

func (b *bundle) summaryLines() []string {
	return []string{wording.CountNoun(b.files, "file"), wording.CountNoun(b.objects, "object")}
}
