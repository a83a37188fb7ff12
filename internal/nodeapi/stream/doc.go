// Package stream proxies requests to a member's API server with apimachinery's UpgradeAwareHandler.
// No code decodes or buffers a stream. The stream ends with the Pod, the Link, the client's
// connection, or an idle timeout. The number of sessions is limited for each member and in total
// (I7).
package stream
