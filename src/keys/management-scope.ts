/** Rights of a management key: to read or to change one kind of object. Changing does not include reading. */
export const MANAGEMENT_SCOPES = [
	"accounts:read",
	"accounts:write",
	"keys:read",
	"keys:write",
	"projects:read",
	"projects:write",
	"credit:read",
	"credit:write",
	"usage:read",
	"catalog:read",
] as const;

export type ManagementScope = (typeof MANAGEMENT_SCOPES)[number];

export function isManagementScope(text: string): text is ManagementScope {
	return (MANAGEMENT_SCOPES as readonly string[]).includes(text);
}
