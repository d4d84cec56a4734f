/**
 * Rights of roles, which routes check (`route-rules.ts`) and pages show. Scope `own` covers the projects of the member,
 * their keys, and objects outside projects that the member created.
 */
export const ROLES = ["owner", "admin", "developer", "billing", "viewer"] as const;
export type Role = (typeof ROLES)[number];
export type RightScope = "all" | "own";

export const ROLE_LABELS = {
	owner: "Owner",
	admin: "Admin",
	developer: "Developer",
	billing: "Billing",
	viewer: "Viewer",
} as const satisfies Readonly<Record<Role, string>>;

interface RightRow {
	/** Text that follows "may …" on pages. */
	readonly says: string;
	readonly roles: Partial<Readonly<Record<Role, RightScope>>>;
}

const EVERYBODY = { owner: "all", admin: "all", developer: "all", billing: "all", viewer: "all" } as const;
const ADMINS = { owner: "all", admin: "all" } as const;

const TABLE = {
	"account.see": { says: "see the overview, usage, requests, batches and members", roles: EVERYBODY },
	"keys.see": { says: "see keys, never their secrets", roles: { ...EVERYBODY, developer: "own" } },
	"keys.change": { says: "create, edit, rotate and revoke keys", roles: { ...ADMINS, developer: "own" } },
	"projects.see": { says: "see projects", roles: { ...EVERYBODY, developer: "own" } },
	"projects.change": { says: "create, edit and archive projects, choose their members and move keys", roles: ADMINS },
	"requests.send": {
		says: "use the playground with a key, run batches and download their files",
		roles: { ...ADMINS, developer: "own" },
	},
	"credit.see": { says: "see top-ups, the ledger and receipts", roles: { ...ADMINS, billing: "all", viewer: "all" } },
	"credit.buy": { says: "top up and set the low-credit alert", roles: { ...ADMINS, billing: "all" } },
	"notices.get": {
		says: "get mails about batches, credit, caps and expiring keys",
		roles: { ...ADMINS, billing: "all" },
	},
	"card.charge": { says: "save a card and set up automatic top-ups", roles: { ...ADMINS, billing: "all" } },
	"billing.change": { says: "edit the billing details on receipts", roles: { ...ADMINS, billing: "all" } },
	"account.change": { says: "rename the account and choose who gets mails about batches", roles: ADMINS },
	"members.manage": { says: "invite and remove members and change their roles", roles: ADMINS },
	"sign_in.manage": { says: "set up single sign-on", roles: { owner: "all" } },
	"owners.manage": { says: "add, change and remove owners", roles: { owner: "all" } },
} as const satisfies Record<string, RightRow>;

export type Right = keyof typeof TABLE;
export const RIGHTS: { readonly [R in Right]: RightRow & { readonly says: (typeof TABLE)[R]["says"] } } = TABLE;

/** Objects for which the role has the right; undefined: none. A role of a later version has no rights. */
export const scopeForRole = (role: Role, right: Right): RightScope | undefined => RIGHTS[right].roles[role];

export const roleHasRight = (role: Role, right: Right): boolean => scopeForRole(role, right) !== undefined;

export const rightToManage = (role: Role): Right => (role === "owner" ? "owners.manage" : "members.manage");

export const rolesJson = (right: Right): string => JSON.stringify(ROLES.filter((role) => roleHasRight(role, right)));
