// Package reflection decides which member classes are published in the host under their own names.
// MemberClasses contains the members' classes as last read from a synced cache. A View compares them with
// registrations and host classes, and decides for each class which registrations offer it and how
// the host class should look. The package writes nothing and does not block: the reflected_class
// controller acts on its decisions, and cluster_registration reports which classes are not
// published.
//
// For a member that has not been connected since the manager started, Xylem uses the labels
// offered-by.xylem.io/<registration> of the host class instead, if the class's topologies contain
// the member's ID. So an away member keeps its offers, and no class is removed before its member's
// classes have been listed. Xylem records a member's classes at most every two seconds, regardless
// of how often they change (I7).
//
//   - The policy and expansion of a published class stand while a member that publishes it
//     still offers them. Otherwise, the oldest registration that offers the name decides. If the
//     class of another registration differs, that registration reports a conflict.
//   - A reflected class has no parameters, so it maps to the class of the same name. If a rule
//     of the registration (an exact rule, or the prefix) maps the name to another class, that
//     member does not offer it, and the registration reports that.
//   - A member that has the class but does not offer it gets no Pods that use the class,
//     because Xylem does not use classes that a registration does not select.
//   - If a member has more classes than the maximum, the classes that it already offers take
//     precedence, so that a new class displaces no other. The rest follow by name. After a
//     start, the host's classes show which ones the member already offers.
//   - A class that a connected member no longer has is offered for five more seconds. So a
//     class that is replaced (`kubectl replace --force`) is not deleted in the host, and a
//     class that keeps changing costs at most one write each time. During these seconds, the
//     scheduler does not select the member for this class, because Xylem deletes its
//     CSIStorageCapacity immediately.
package reflection
