// Package stream passes requests on to a member's API server, through apimachinery's
// UpgradeAwareHandler. Nothing decodes or buffers a stream. It ends with the Pod, the Link,
// the client, or an idle timeout, and there are only so many for each member, and in total
// (I7).
package stream
