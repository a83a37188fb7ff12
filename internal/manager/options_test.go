package manager

import (
	"flag"
	"strings"
	"testing"
)

func TestOptions(t *testing.T) {
	for args, wrong := range map[string]string{
		"":                                                      "",
		"--pprof-bind-address=127.0.0.1:8082":                   "",
		"--pprof-bind-address=[::1]:8082":                       "",
		"--pprof-bind-address=:8082":                            "--pprof-bind-address",
		"--pprof-bind-address=10.0.0.1:8082":                    "--pprof-bind-address",
		"--pprof-bind-address=localhost:8082":                   "--pprof-bind-address",
		"--fence-duration=10s --probe-interval=4s":              "--probe-interval",
		"--fence-duration=1ms":                                  "--fence-duration",
		"--fence-epoch-interval=0":                              "--fence-epoch-interval",
		"--orphan-interval=1ms":                                 "--orphan-interval",
		"--stuck-after=-1s":                                     "--stuck-after",
		"--silent-after=0":                                      "--silent-after",
		"--claims-in-progress=0":                                "--claims-in-progress",
		"--recheck-interval=100ms":                              "--recheck-interval",
		"--nominated-node-name=sometimes":                       "--nominated-node-name",
		"--member-answer-limit=64Mi":                            "",
		"--member-answer-limit=1Mi":                             "--member-answer-limit",
		"--member-cache-limit=1000":                             "--member-cache-limit",
		"--node-api-bind-address=0":                             "",
		"--node-api-bind-address=10250":                         "--node-api-bind-address",
		"--node-api-bind-address=:0":                            "--node-api-bind-address",
		"--node-api-bind-address=127.0.0.1:10250":               "",
		"--node-api-advertise-address=node.example":             "--node-api-advertise-address",
		"--node-api-advertise-address=fd00::1":                  "",
		"--node-api-sessions=10":                                "--node-api-member-sessions",
		"--node-api-member-sessions=0":                          "--node-api-member-sessions",
		"--node-api-idle-timeout=1ms":                           "--node-api-idle-timeout",
		"--node-api-cert-dir=/c --node-api-request-certificate": "--node-api-request-certificate",
		"--stuck-after=0 --nominated-node-name=always":          "--stuck-after",
	} {
		t.Run(args, func(t *testing.T) {
			var o Options
			flags := flag.NewFlagSet("manager", flag.ContinueOnError)
			o.AddFlags(flags)
			if err := flags.Parse(strings.Fields(args)); err != nil {
				t.Fatal(err)
			}
			err := o.CompleteAndValidate()
			if wrong == "" && err != nil || wrong != "" && (err == nil || !strings.HasPrefix(err.Error(), wrong+" ")) {
				t.Errorf("%v, want an error with %q", err, wrong)
			}
		})
	}
}
