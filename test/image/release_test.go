package image

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

// release runs a target of the Makefile, which writes to the returned directory.
func release(t *testing.T, root string, arguments ...string) (dist, out string, err error) {
	t.Helper()
	dist = t.TempDir()
	command := exec.CommandContext(t.Context(), "make", append([]string{"--silent", "--no-print-directory", "-C", root, "DIST=" + dist}, arguments...)...)
	output, err := command.CombinedOutput()
	return dist, string(output), err
}

// TestReleaseCharts checks that a packed chart names the image of its release, and that no link of its
// pages leads out of the chart.
func TestReleaseCharts(t *testing.T) {
	root, err := kubebin.Root()
	if err != nil {
		t.Fatal(err)
	}
	if _, out, err := release(t, root, "release-charts", "IMG=xylem:dev"); err == nil || !strings.Contains(out, "set the image with its registry") {
		t.Errorf("an image without a registry: got %v, %q", err, out)
	}
	dist, out, err := release(t, root, "release-charts", "IMG=registry.example:5000/a/xylem:v9.8.7", "VERSION=v9.8.7")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	values, err := os.ReadFile(filepath.Join(dist, "charts", "xylem", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n  repository: registry.example:5000/a/xylem\n", "\n  tag: \"v9.8.7\"\n"} {
		if !strings.Contains(string(values), want) {
			t.Errorf("values.yaml lacks %q", want)
		}
	}
	pages, err := filepath.Glob(filepath.Join(dist, "charts", "*", "*.md"))
	if err != nil || len(pages) < 5 {
		t.Fatalf("got pages %q, %v", pages, err)
	}
	readme, err := os.ReadFile(filepath.Join(dist, "charts", "xylem", "README.md"))
	if want := "| `image.repository` | `\"registry.example:5000/a/xylem\"` |"; err != nil || !strings.Contains(string(readme), want) || !strings.Contains(string(readme), "| `image.tag` | `\"v9.8.7\"` |") {
		t.Errorf("README.md contradicts values.yaml: it lacks %s, or the tag (%v)", want, err)
	}
	leaving := regexp.MustCompile(`\]\(\.\.[^)]*\)`)
	absolute := 0
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if links := leaving.FindAllString(string(content), -1); len(links) > 0 {
			t.Errorf("%s: links leave the chart: %q", filepath.Base(page), links)
		}
		for _, link := range regexp.MustCompile(`\]\(https://github\.com/xylem-io/xylem/blob/v9\.8\.7/([^)#]*)`).FindAllStringSubmatch(string(content), -1) {
			absolute++
			if _, err := os.Stat(filepath.Join(root, link[1])); err != nil {
				t.Errorf("%s: %v", filepath.Base(page), err)
			}
		}
	}
	if absolute == 0 {
		t.Error("no page links to the release's files")
	}
}

// TestReleaseNotes checks that a release without notes fails, before anything is published.
func TestReleaseNotes(t *testing.T) {
	root, err := kubebin.Root()
	if err != nil {
		t.Fatal(err)
	}
	if _, out, err := release(t, root, "release-notes", "VERSION=v9.8.7"); err == nil || !strings.Contains(out, `no section "## [9.8.7]"`) {
		t.Errorf("a version without a section: got %v, %q", err, out)
	}
	changelog, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	described := regexp.MustCompile(`(?m)^## \[([^]]+)\].*\n+[^#\s]|^## \[([^]]+)\].*\n+### `).FindSubmatch(changelog)
	if described == nil {
		t.Fatal("CHANGELOG.md describes no version")
	}
	dist, out, err := release(t, root, "release-notes", "VERSION="+string(described[1])+string(described[2]))
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	notes, err := os.ReadFile(filepath.Join(dist, "notes.md"))
	if err != nil || !strings.Contains(string(notes), "### ") || strings.Contains(string(notes), "\n## [") {
		t.Errorf("got notes %.80q, %v", notes, err)
	}
	workflow, err := os.ReadFile(filepath.Join(root, ".github", "workflows", "release.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if check, build := strings.Index(string(workflow), "make release-notes"), strings.Index(string(workflow), "make release IMG"); check < 0 || build < check {
		t.Error("the workflow does not check the notes before it builds the release")
	}
}

// TestWorkflows checks that workflows use actions by their commit, and that a job with rights runs neither
// code of the repository nor its tools, which could use these rights.
func TestWorkflows(t *testing.T) {
	root, err := kubebin.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d workflows: %v", len(files), err)
	}
	pinned := regexp.MustCompile(`^[^@]+@[0-9a-f]{40}$`)
	runsCode := regexp.MustCompile(`(?m)(^|[;&|(]|\s)(make|go) `)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var workflow struct {
			Permissions map[string]string
			Jobs        map[string]struct {
				Permissions map[string]string
				Environment string
				Steps       []struct{ Uses, Run string }
			}
		}
		if err := yaml.Unmarshal(text, &workflow); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(workflow.Permissions) == 0 || slices.Contains(slices.Collect(maps.Values(workflow.Permissions)), "write") {
			t.Errorf("%s: all jobs have rights, or the repository's default: %v", file, workflow.Permissions)
		}
		for name, job := range workflow.Jobs {
			rights := slices.Contains(slices.Collect(maps.Values(job.Permissions)), "write")
			if rights && job.Environment == "" {
				t.Errorf("%s: job %s has rights, but no protected environment", file, name)
			}
			for _, step := range job.Steps {
				if step.Uses != "" && !pinned.MatchString(step.Uses) {
					t.Errorf("%s: job %s uses %q: name the commit, because others can move a tag", file, name, step.Uses)
				}
				if rights && (runsCode.MatchString(step.Run) || strings.HasPrefix(step.Uses, "actions/checkout")) {
					t.Errorf("%s: job %s has rights and runs code of the repository: %s%s", file, name, step.Uses, step.Run)
				}
			}
		}
	}
}
