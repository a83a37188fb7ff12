package register

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Flags for copies of shared volumes.
const (
	flagDriver = "with-shared-driver"
	flagSecret = "with-shared-secret"
	// driverLimit is Kubernetes' limit on the length of a CSI driver name.
	driverLimit = 63
)

// sharing selects the volumes that the host may copy into the member.
type sharing struct {
	// drivers are names of CSI drivers. secrets have the form <namespace>/<name>.
	drivers, secrets []string
}

func (s *sharing) addSharingFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&s.drivers, flagDriver, nil, "CSI driver whose volumes the member shares with other members: let the host create and delete copies of these volumes. Can be repeated. "+
		"Anybody who steals the token can then mount any volume of this driver, because the member cannot determine who owns a volume.")
	flags.StringArrayVar(&s.secrets, flagSecret, nil, "NAMESPACE/NAME of a Secret that the copies may refer to. Specify the Secrets that the driver's classes in the member name in their parameters csi.storage.k8s.io/*-secret-name. Can be repeated.")
}

func (s *sharing) sharingRequested() bool { return len(s.drivers) > 0 }

func (s *sharing) validateSharing() error {
	for _, driver := range s.drivers {
		if len(driver) > driverLimit || len(validation.IsDNS1123Subdomain(strings.ToLower(driver))) > 0 {
			return fmt.Errorf("--%s=%s is not the name of a CSI driver. Specify a name from `kubectl get csidrivers` in the member", flagDriver, driver)
		}
	}
	for _, secret := range s.secrets {
		namespace, name, _ := strings.Cut(secret, "/")
		if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("--%s=%s is malformed: use NAMESPACE/NAME", flagSecret, secret)
		}
	}
	if len(s.secrets) > 0 && !s.sharingRequested() {
		return fmt.Errorf("--%s has no effect without --%s: specify the driver that uses the Secret", flagSecret, flagDriver)
	}
	return nil
}
