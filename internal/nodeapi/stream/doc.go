// Package stream proxies requests to a member's API server with apimachinery's UpgradeAwareHandler.
// No code decodes or buffers a stream. The stream ends when the Pod, the Link or the client's
// connection ends, or after an idle timeout. The number of sessions is limited for each member and
// in total (I7), and each namespace gets a share of both.
package stream
