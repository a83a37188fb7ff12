package bundle

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// planted is a secret that must be removed. Its format does not identify it as a secret.
const planted = "hunter2Hunter2"

func TestText(t *testing.T) {
	jwt := "eyJhbGciOiJSUzI1NiJ9." + strings.Repeat("a", 30) + "." + strings.Repeat("b", 30)
	for name, tc := range map[string]struct{ text, want string }{
		"plain":                             {"leaf_pv: stamped volume pvc-1 in cluster38", "leaf_pv: stamped volume pvc-1 in cluster38"},
		"bearer token":                      {"Authorization: Bearer " + planted + "\nnext", "Authorization: REDACTED\nnext"},
		"bearer token in a log":             {`"msg":"request","header":"bearer ` + planted + `"`, `"msg":"request","header":"bearer REDACTED"`},
		"basic authentication":              {"basic aHVudGVyMjpodW50ZXIy", "basic REDACTED"},
		"a service account token":           {"sent " + jwt + " to it", "sent REDACTED to it"},
		"a key":                             {"before\n-----BEGIN EC PRIVATE KEY-----\nMHcCAQ\nab\n-----END EC PRIVATE KEY-----\nafter", "before\nREDACTED\nafter"},
		"a truncated key":                   {"before\n-----BEGIN EC PRIVATE KEY-----\nMHcCAQ", "before\nREDACTED"},
		"a URL":                             {"dial https://admin:" + planted + "@db:5432/x", "dial https://REDACTED@db:5432/x"},
		"a URL without password":            {"dial https://10.0.0.1:6443/api", "dial https://10.0.0.1:6443/api"},
		"a URL parameter":                   {"/login?user=a&password=" + planted + "&x=1", "/login?user=a&password=REDACTED&x=1"},
		"JSON":                              {`{"password":"` + planted + ` x","user":"a"}`, `{"password":"REDACTED","user":"a"}`},
		"JSON in JSON":                      {`"{\"token\":\"` + planted + `\"}"`, `"{\"token\":\"REDACTED\"}"`},
		"YAML":                              {"client-key-data: " + planted + "\nkind: Config", "client-key-data: REDACTED\nkind: Config"},
		"a command-line flag":               {"--db-password=" + planted + " --v=2", "--db-password=REDACTED --v=2"},
		"an environment variable":           {"AWS_SECRET_ACCESS_KEY=" + planted, "AWS_SECRET_ACCESS_KEY=REDACTED"},
		"names of Secrets are kept":         {`kubeconfigSecretRef: {name: a}, secretName: b, "token-lifetime": "72h"`, `kubeconfigSecretRef: {name: a}, secretName: b, "token-lifetime": "72h"`},
		"long base64":                       {"got " + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(planted, 10))), "got REDACTED"},
		"digests of pulled images are kept": {"docker-pullable://nginx@sha256:" + strings.Repeat("0f", 32), "docker-pullable://nginx@sha256:" + strings.Repeat("0f", 32)},
		"keys of taints are kept":           {"taint {key: kosmos.io/node} topologyKey=zone secrets-store", "taint {key: kosmos.io/node} topologyKey=zone secrets-store"},
		"flags without a value are kept":    {"--kubeconfig-secret --leader-elect --token-lifetime 72h", "--kubeconfig-secret --leader-elect --token-lifetime 72h"},
		"what follows a list":               {`{"tokens":["` + planted + `"],"user":"a"}`, `{"tokens":REDACTED,"user":"a"}`},
		"what follows a block":              {"password: |\n  " + planted + "\nuser: a", "password: REDACTED\nuser: a"},
		"an address after a URL":            {"dial redis://:" + planted + "@cache:6379/0 from a@b", "dial redis://REDACTED@cache:6379/0 from a@b"},
		"image digests are kept":            {"image@sha256:" + strings.Repeat("0f", 32), "image@sha256:" + strings.Repeat("0f", 32)},
		"a sentence about tokens is kept":   {"the token expired. Create another one", "the token expired. Create another one"},
		"a password before a digest":        {"pull https://user:" + planted + "@registry.example/img@sha256:0f0f failed", "pull https://REDACTED@registry.example/img@sha256:0f0f failed"},
		"a password after a harmless URL":   {"https://a.example/go?to=https://user:" + planted + "@db", "https://a.example/go?to=https://REDACTED@db"},
		"siblings of a nested block":        {"spec:\n  password: |\n    " + planted + "\n\n    " + planted + "\n  image: nginx\n  replicas: 3", "spec:\n  password: REDACTED\n  image: nginx\n  replicas: 3"},
		"siblings of a block in a list":     {"- password: |-\n    " + planted + "\n  image: nginx\n- name: b", "- password: REDACTED\n  image: nginx\n- name: b"},
		"siblings of a list":                {"tokens:\n- " + planted + "\n- x\nimage: nginx", "tokens:\n- REDACTED\nimage: nginx"},
		"siblings of an indented list":      {"{\n  \"tokens\": [\n    \"" + planted + "\"\n  ],\n  \"image\": \"nginx\"\n}", "{\n  \"tokens\": REDACTED,\n  \"image\": \"nginx\"\n}"},
		"what follows a map":                {"secrets:map[foo:" + planted + " bar:" + planted + "] driver:d", "secrets:REDACTED driver:d"},
		"what follows a truncated line":     {`{"password":"` + planted + " x\nimage: nginx", `{"password":"REDACTED` + "\nimage: nginx"},
		"what follows JSON nested twice":    {`"{\\\"token\\\":\\\"` + planted + ` x\\\",\\\"image\\\":\\\"nginx\\\"}"`, `"{\\\"token\\\":\\\"REDACTED\\\",\\\"image\\\":\\\"nginx\\\"}"`},
		"what follows a quoted argument":    {`["--password","` + planted + ` x","--v=2"]`, `["--password","REDACTED","--v=2"]`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, redactText(tc.text)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestTextKeeps checks that Text keeps names, hosts, images and reasons that are near a word for a secret.
func TestTextKeeps(t *testing.T) {
	digest := "@sha512:" + strings.Repeat("0f", 32)
	for name, text := range map[string]string{
		"a Secret's name":                "the pull-secret regcred was not found",
		"a name that ends in secret":     "cluster38-kubeconfig-secret not found",
		"a boolean flag":                 "specify --overwrite-secret to replace its credentials with a token",
		"a flag for a Secret's name":     "--image-pull-secret regcred --kubeconfig-secret=cluster38",
		"an interval":                    "--renew-tokens-after 0.5",
		"pull secrets, YAML":             "imagePullSecrets:\n- name: regcred\n- name: other\nnodeName: a",
		"pull secrets, JSON":             `{"imagePullSecrets":[{"name":"regcred"},{"name":"other"}],"nodeName":"a"}`,
		"a volume, YAML":                 "- name: v\n  secret:\n    defaultMode: 420\n    secretName: regcred\n- name: w",
		"a volume, JSON":                 `{"name":"v","secret":{"defaultMode":420,"secretName":"regcred"}}`,
		"empty values":                   `{"tokens":[],"password":""}`,
		"a URL with a scope":             "https://registry.npmjs.org/@scope/pkg",
		"a URL with a scope and a port":  "http://verdaccio:4873/@scope/pkg",
		"a URL with an address":          "https://api.example:6443/users/a@b.example",
		"an image with a long digest":    "docker-pullable://registry.example/nginx" + digest,
		"an image with a port":           "docker-pullable://registry:5000/nginx" + digest,
		"a host":                         `{"level":"error","msg":"lookup pass: no such host"}`,
		"a host with a port":             "dial auth:8080: connection refused",
		"a reason":                       "auth: unknown user",
		"a reason in the next line":      "cannot verify the token:\n\tthe issuer is unknown",
		"an indented reason after a URL": "dial https://10.0.0.1:6443/api:\n\ttimeout",
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(text, redactText(text)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestFormats plants secrets in formats that occur in logs, events and messages of drivers.
func TestFormats(t *testing.T) {
	const s, aws = "Zk3vR9qLw2", "AKIAIOSFODNN7EXAMPLE"
	for name, text := range map[string]string{
		"URL, empty user":              "dial redis://:" + s + "@cache:6379/0",
		"URL, password with /":         "dial postgres://app:" + s + "/x@db:5432",
		"URL, token as user":           "fetch https://" + s + "@github.com/a/b",
		"URL, password with @":         "postgres://app:p@" + s + "@db:5432",
		"URL-encoded userinfo":         "https://user%3A" + s + "@host/",
		"GitHub token":                 "remote: ghp_" + strings.Repeat(s, 3) + "abcdef",
		"Slack token":                  "xoxb-1234567890-" + s,
		"AWS key id and secret, JSON":  `{"AccessKeyId":"` + aws + `","SecretAccessKey":"` + s + `"}`,
		"AWS secret in a sentence":     "using credentials " + aws + "/" + s,
		"--password VALUE (space)":     "mount.cifs --password " + s + " //srv/x",
		"-p VALUE":                     "mysql -u root -p" + s,
		"cifs option pass=":            "mount -o username=u,pass=" + s + ",vers=3",
		"mount option secret=":         "mount -t ceph -o name=admin,secret=" + s,
		"ceph keyring key =":           "[client.admin]\n\tkey = " + s + "==",
		"NFS/iSCSI CHAP":               "node.session.auth.password = " + s,
		"CSI error with map":           "rpc error: code = Internal desc = secrets: map[userID:admin userKey:" + s + "]",
		"Go struct dump":               "Credentials{User:admin Pass:" + s + "}",
		"YAML, pass:":                  "pass: " + s,
		"JSON, auth (docker)":          `{"auths":{"r":{"auth":"` + s + `dXNlcg=="}}}`,
		"JSON, two-line PEM in JSON":   `{"key":"-----BEGIN PRIVATE KEY-----\nMIIB` + s + `\n-----END PRIVATE KEY-----\n"}`,
		"env export":                   "export PGPASSWORD=" + s,
		"XML":                          "<password>" + s + "</password>",
		"key with spaces":              "The password is " + s,
		"kubeconfig token in one line": "users: [{name: a, user: {token: " + s + "}}]",
		"encryption key":               "encryption-key=" + s,
		"passcode":                     "otp=" + s + " pin=" + s,
		"SAS URL":                      "https://acc.blob.core.windows.net/c?sv=2022&sig=" + s + "%3D",
		"presigned":                    "https://b.s3.amazonaws.com/o?X-Amz-Signature=" + s + "&x=1",
		"X-Vault-Token header":         "X-Vault-Token: " + s,
		"Authorization: AWS4":          "Authorization: AWS4-HMAC-SHA256 Credential=" + s + "/x",
		"password with space after colon, quoted and escaped": `msg="{\"password\": \"` + s + ` tail\"}"`,
		"password containing a quote":                         `{"password":"ab\"` + s + `"}`,
		"multi-line password in YAML":                         "password: |\n  " + s + "\n",
		"list of tokens":                                      `{"tokens":["` + s + `"]}`,
		"tokens as string":                                    `{"tokens":"` + s + `"}`,
		"zap console field":                                   "connect\t{\"dsn\": \"user:" + s + "@tcp(db:3306)/x\"}",
		"URL before a digest":                                 "pull https://user:" + s + "@registry.example/img@sha256:0f0f failed",
		"URL in a URL":                                        "https://a.example/go?to=https://user:" + s + "@db",
		"URL, dotted user, password with /":                   "postgres://john.doe:1234/" + s + "@db:5432",
		"driver, password with @":                             "user:p@" + s + "@tcp(db:3306)",
		"flag, double quotes":                                 `--password "x ` + s + `"`,
		"flag, single quotes":                                 "--password 'x " + s + "'",
		"flag, JSON":                                          `["--password","` + s + `"]`,
		"flag, JSON in JSON":                                  `"[\"--password\", \"` + s + `\"]"`,
		"flag, indented JSON":                                 "\"--password\",\n  \"" + s + "\"",
		"flag, YAML":                                          "args:\n- --password\n- " + s,
		"flag, printed list":                                  "[--client-secret " + s + "]",
		"environment variable, YAML":                          "- name: DB_PASSWORD\n  value: " + s,
		"environment variable, JSON":                          `{"name":"DB_PASSWORD","value":"` + s + `"}`,
		"block with a blank line":                             "a:\n  password: |\n    x\n\n    " + s + "\n  b: c",
		"block, CRLF":                                         "password: |\r\n  x\r\n\r\n  " + s + "\r\n",
		"string of several lines, YAML":                       "password: \"x\n  " + s + "\"",
		"value in the next line":                              "password:\n  " + s,
		"single quotes in single quotes, YAML":                "password: 'x''" + s + "'",
		"list, YAML":                                          "tokens:\n- x\n- " + s,
		"list in a list, YAML":                                "- tokens:\n  - x\n  - " + s,
		"indented list, YAML":                                 "tokens:\n  - x\n  - " + s,
		"list of maps, YAML":                                  "tokens:\n- name: a\n  value: " + s,
		"map, YAML":                                           "credentials:\n  user: a\n  pw: " + s,
		"indented list, JSON":                                 "\"tokens\": [\n \"" + s + "\"\n]",
		"truncated list, JSON":                                "\"tokens\": [\n \"x\",\n \"" + s,
		"bracket in a list":                                   `{"tokens":["]","` + s + `"]}`,
		"map, JSON":                                           `{"secrets":{"foo":{"a":"x"},"bar":"` + s + `"}}`,
		"printed map":                                         "secrets:map[foo:x bar:" + s + "]",
		"printed list of strings":                             `Tokens:[]string{"x", "` + s + `"}`,
		"printed map, short names":                            "map[auth:x pass:" + s + "]",
		"YAML in one line, short name":                        "{user: a, pass: " + s + "}",
		"truncated JSON":                                      `{"password":"x ` + s,
		"truncated JSON in JSON":                              `"{\"password\":\"x ` + s,
		"JSON nested twice":                                   `"{\\\"password\\\":\\\"x ` + s + `\\\"}"`,
		"JSON nested twice, escaped quote":                    `"{\\\"password\\\":\\\"x\\\\\\\"` + s + `\\\"}"`,
		"name after a name":                                   "password: token: " + s,
		"user name and password":                              "auth=name:" + s,
		"assignment in code":                                  `password := "` + s + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			if got := redactText(text); strings.Contains(got, s) {
				t.Errorf("got %q from %q, which contains the secret", got, text)
			}
		})
	}
}

func TestKnown(t *testing.T) {
	var k knownSecrets
	k.addSecret("abc") // too short to be distinguished from ordinary words
	k.addSecret("secret-1")
	k.addSecret("secret-1-longer\n")
	if got := k.removeSecrets("abc secret-1-longer secret-1"); got != "abc REDACTED REDACTED" {
		t.Errorf("got %q, want both known secrets redacted", got)
	}
}

// everywhere returns an object of the kind with the planted value in every field that may contain a
// secret, and with values that must be kept.
func everywhere(kind string) *unstructured.Unstructured {
	container := map[string]any{
		"name": "app", "image": "app:1", "command": []any{planted}, "args": []any{planted}, "workingDir": planted,
		"env":           []any{map[string]any{"name": "PASSWORD", "value": planted}, map[string]any{"name": "OTHER", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "s", "key": planted}}}},
		"envFrom":       []any{map[string]any{"prefix": planted}},
		"lifecycle":     map[string]any{"preStop": map[string]any{"exec": map[string]any{"command": []any{planted}}}},
		"livenessProbe": map[string]any{"httpGet": map[string]any{"httpHeaders": []any{map[string]any{"name": "X", "value": planted}}}},
	}
	spec := map[string]any{
		"containers": []any{container}, "initContainers": []any{container}, "ephemeralContainers": []any{container},
		"hostAliases": []any{map[string]any{"hostnames": []any{planted}}},
		"volumes": []any{
			map[string]any{"name": "v", "csi": map[string]any{"driver": "d", "volumeAttributes": map[string]any{"password": planted}}},
			map[string]any{"name": "f", "flexVolume": map[string]any{"options": map[string]any{"password": planted}}},
			map[string]any{"name": "p", "projected": map[string]any{"sources": []any{map[string]any{"secret": map[string]any{"name": planted}}}}},
		},
		"csi":          map[string]any{"driver": "d", "volumeHandle": "h", "volumeAttributes": map[string]any{"xylem.io/driver": "real", "password": planted}, "nodeStageSecretRef": map[string]any{"name": planted}},
		"flexVolume":   map[string]any{"options": map[string]any{"password": planted}},
		"cephfs":       map[string]any{"user": planted},
		"mountOptions": []any{"password=" + planted},
	}
	// These kinds have no field for a user's secrets, but their strings are redacted too.
	said := "Bearer " + planted
	status := map[string]any{
		"phase": "Pending", "message": said, "conditions": []any{map[string]any{"type": "Ready", "message": said}},
		"password": planted,
	}
	if kind == "Pod" {
		status["containerStatuses"] = []any{map[string]any{"name": "app", "state": map[string]any{"terminated": map[string]any{"exitCode": int64(1), "message": planted}}}}
	}
	if kind == "Deployment" {
		spec = map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{"x": planted}}, "spec": map[string]any{
			"containers":     []any{map[string]any{"name": "manager", "args": []any{"--token=" + planted, "--leader-elect"}, "env": []any{map[string]any{"name": "A", "value": planted}}}},
			"initContainers": []any{container},
		}}}
	}
	switch kind {
	case "Pod", "PersistentVolume", "Deployment", "Node", "VolumeSnapshotContent", "PersistentVolumeClaim":
	default: // the whole spec is kept
		spec = map[string]any{"name": said}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kind, "spec": spec, "status": status, "message": said, "reason": said,
		"data": map[string]any{"password": planted}, "stringData": map[string]any{"password": planted}, "binaryData": map[string]any{"x": planted},
		"parameters": map[string]any{"xylem.io/member-class": "gp3", "password": planted, "csi.storage.k8s.io/provisioner-secret-name": planted},
		"metadata": map[string]any{
			"name": "kept", "labels": map[string]any{"app": "kept"},
			"annotations": map[string]any{
				"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"password":"` + planted + `"}}`, "example.com/note": planted,
				"xylem.io/pushed": planted, "xylem.io/placed-in": "kept", "xylem.io/tried": "member says: " + said,
			},
			"managedFields": []any{map[string]any{"manager": planted}},
		},
	}}
}

// TestObjectHasNoSecrets checks that Object removes secrets from objects of every kind, known or
// not, and keeps what identifies the object.
func TestObjectHasNoSecrets(t *testing.T) {
	for _, kind := range append(redactedKinds(), "Secret", "ConfigMap", "Anything") {
		t.Run(kind, func(t *testing.T) {
			content, err := yaml.Marshal(redactObject(everywhere(kind)))
			if err != nil {
				t.Fatal(err)
			}
			text := string(content)
			for _, form := range []string{planted, base64.StdEncoding.EncodeToString([]byte(planted))} {
				if strings.Contains(text, form) {
					t.Errorf("want no %q in\n%s", form, text)
				}
			}
			for _, want := range []string{"name: kept", "kind: " + kind, "app: kept", "xylem.io/placed-in: kept"} {
				if !strings.Contains(text, want) {
					t.Errorf("want %q in\n%s", want, text)
				}
			}
		})
	}
}

// TestObjectKeeps checks that Object keeps what a bug report needs.
func TestObjectKeeps(t *testing.T) {
	for kind, wants := range map[string][]string{
		"Pod":              {"image: app:1", "name: PASSWORD", "driver: d", "flexVolume: {}", "exitCode: 1", "phase: Pending", "type: Ready", "xylem.io/tried: 'member says: Bearer REDACTED'"},
		"PersistentVolume": {"volumeHandle: h", "xylem.io/driver: real", "password: REDACTED", "flexVolume: {}"},
		"StorageClass":     {"xylem.io/member-class: gp3", "password: REDACTED"},
		"Deployment":       {"--leader-elect", "--token=REDACTED"},
		"Event":            {"message: Bearer REDACTED"},
	} {
		content, err := yaml.Marshal(redactObject(everywhere(kind)))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(content), want) {
				t.Errorf("%s: want %q in\n%s", kind, want, content)
			}
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("password", "x", uint8(0))
	f.Fuzz(func(t *testing.T, before, after string, form uint8) {
		// Each form separates the value from the fuzzed text around it.
		forms := []string{"\nAuthorization: Bearer %s\n", "\npassword: %s\n", "\n{\"token\": \"%s\"}\n", "\n--api-key=%s\n", "\nhttps://user:%s@host/\n"}
		text := before + fmt.Sprintf(forms[int(form)%len(forms)], planted) + after
		if got := redactText(text); strings.Contains(got, planted) && !strings.Contains(before+after, planted) {
			t.Errorf("the secret in %q was not removed: %q", text, got)
		}
	})
}
