/** The one table of the management interface: what is served, checked, described and listed in its paper. */
import type { ManagementScope } from "../keys/management-scope.ts";
import type { MANAGEMENT_ANSWERS, MANAGEMENT_REQUESTS } from "./management-schemas.ts";

/** Names of query parameters; `MANAGEMENT_QUERY` says what they are. */
export type ManagementQuery = keyof typeof MANAGEMENT_QUERY;

export interface ManagementRoute {
	readonly method: "GET" | "POST" | "PATCH";
	readonly path: string;
	/** Null: any management key. */
	readonly scope: ManagementScope | null;
	readonly summary: string;
	readonly query?: readonly ManagementQuery[];
	readonly body?: keyof typeof MANAGEMENT_REQUESTS;
	readonly answer: keyof typeof MANAGEMENT_ANSWERS;
	/** Makes something: a token of the client's makes it repeatable. `required`: it is not done without. */
	readonly token?: "optional" | "required";
	/** Takes `If-Match`. */
	readonly conditional?: true;
	/** Waits until all instances go by it: 202 if some still may not when the wait ends. */
	readonly fenced?: true;
}

export const MANAGEMENT_PREFIX = "/v1/management/";

export const MANAGEMENT_QUERY = {
	limit: { type: "integer", minimum: 1, maximum: 200, description: "Rows of a page; 50 if it is not given." },
	after: { type: "string", maxLength: 512, description: "The `next` of the page before." },
	email: { type: "string", maxLength: 320, description: "The one account with this address." },
	account_id: { type: "string", maxLength: 64 },
	key_id: { type: "string", maxLength: 64 },
	model: { type: "string", maxLength: 200 },
	state: { type: "string", enum: ["pending", "booked", "rejected"] },
	from: { type: "string", pattern: "^[1-9]\\d{3}-\\d\\d-\\d\\d$", description: "The first day, in UTC." },
	to: { type: "string", pattern: "^[1-9]\\d{3}-\\d\\d-\\d\\d$", description: "The last day, in UTC, itself included." },
} as const;

/** Query parameters without which a route of them answers 400. */
export const MANAGEMENT_QUERY_REQUIRED: readonly ManagementQuery[] = ["from", "to"];

const table = <T extends Readonly<Record<string, ManagementRoute>>>(
	routes: T,
): { readonly [K in keyof T]: ManagementRoute } => routes;

export const MANAGEMENT_ROUTES = table({
	self: {
		method: "GET",
		path: "/v1/management/self",
		scope: null,
		summary: "The management key that asks, and its scopes.",
		answer: "ManagementSelf",
	},
	listAccounts: {
		method: "GET",
		path: "/v1/management/accounts",
		scope: "accounts:read",
		summary: "Accounts, newest first.",
		query: ["limit", "after", "email"],
		answer: "ManagementAccountList",
	},
	createAccount: {
		method: "POST",
		path: "/v1/management/accounts",
		scope: "accounts:write",
		summary: "Make an account without credit; it counts as signed in.",
		body: "ManagementAccountCreate",
		answer: "ManagementAccount",
		token: "optional",
	},
	readAccount: {
		method: "GET",
		path: "/v1/management/accounts/{id}",
		scope: "accounts:read",
		summary: "One account.",
		answer: "ManagementAccount",
	},
	updateAccount: {
		method: "PATCH",
		path: "/v1/management/accounts/{id}",
		scope: "accounts:write",
		summary: "Rename an account, suspend it or lift its suspension; a change of state needs a reason.",
		body: "ManagementAccountUpdate",
		answer: "ManagementAccountChanged",
		conditional: true,
		fenced: true,
	},
	readCredit: {
		method: "GET",
		path: "/v1/management/accounts/{id}/credit",
		scope: "credit:read",
		summary: "An account's credit: balance, held, available and spent.",
		answer: "ManagementCredit",
	},
	listProjects: {
		method: "GET",
		path: "/v1/management/accounts/{id}/projects",
		scope: "projects:read",
		summary: "An account's projects, newest first, archived ones too.",
		query: ["limit", "after"],
		answer: "ManagementProjectList",
	},
	createProject: {
		method: "POST",
		path: "/v1/management/accounts/{id}/projects",
		scope: "projects:write",
		summary: "Make a project: a budget, models and limits for some of an account's keys.",
		body: "ManagementProjectCreate",
		answer: "ManagementProject",
		token: "optional",
	},
	readProject: {
		method: "GET",
		path: "/v1/management/projects/{id}",
		scope: "projects:read",
		summary: "One project.",
		answer: "ManagementProject",
	},
	updateProject: {
		method: "PATCH",
		path: "/v1/management/projects/{id}",
		scope: "projects:write",
		summary: "Change a project's name, cap, models or limits; `null` takes one away.",
		body: "ManagementProjectUpdate",
		answer: "ManagementProjectChanged",
		conditional: true,
		fenced: true,
	},
	archiveProject: {
		method: "POST",
		path: "/v1/management/projects/{id}/archive",
		scope: "projects:write",
		summary: "End a project with all its keys everywhere, for good. Repeating it changes nothing.",
		body: "ManagementProjectArchive",
		answer: "ManagementProjectChanged",
		fenced: true,
	},
	listProjectMembers: {
		method: "GET",
		path: "/v1/management/projects/{id}/members",
		scope: "projects:read",
		summary: "Who works in a project, in the order in which they joined.",
		answer: "ManagementProjectMemberList",
	},
	addProjectMember: {
		method: "POST",
		path: "/v1/management/projects/{id}/members",
		scope: "projects:write",
		summary: "Let a member of the account work in a project. Repeating it changes nothing.",
		body: "ManagementProjectMemberAdd",
		answer: "ManagementProjectMember",
	},
	removeProjectMember: {
		method: "POST",
		path: "/v1/management/projects/{id}/members/remove",
		scope: "projects:write",
		summary: "Take somebody out of a project; the keys that he made in it are kept or revoked, as is said.",
		body: "ManagementProjectMemberRemove",
		answer: "ManagementProjectMemberRemoved",
		fenced: true,
	},
	listKeys: {
		method: "GET",
		path: "/v1/management/keys",
		scope: "keys:read",
		summary: "An account's API keys, newest first, revoked ones too.",
		query: ["limit", "after", "account_id"],
		answer: "ManagementKeyList",
	},
	createKey: {
		method: "POST",
		path: "/v1/management/keys",
		scope: "keys:write",
		summary: "Make an API key. Its secret is told once, and again to the same token within a day.",
		body: "ManagementKeyCreate",
		answer: "ManagementKeyMade",
		token: "optional",
	},
	readKey: {
		method: "GET",
		path: "/v1/management/keys/{id}",
		scope: "keys:read",
		summary: "One API key.",
		answer: "ManagementKey",
	},
	updateKey: {
		method: "PATCH",
		path: "/v1/management/keys/{id}",
		scope: "keys:write",
		summary: "Change an API key's name, cap, models, expiry or limits; `null` takes one away.",
		body: "ManagementKeyUpdate",
		answer: "ManagementKeyChanged",
		conditional: true,
		fenced: true,
	},
	revokeKey: {
		method: "POST",
		path: "/v1/management/keys/{id}/revoke",
		scope: "keys:write",
		summary: "End an API key everywhere. Repeating it changes nothing.",
		body: "ManagementKeyRevoke",
		answer: "ManagementKeyChanged",
		fenced: true,
	},
	rotateKey: {
		method: "POST",
		path: "/v1/management/keys/{id}/rotate",
		scope: "keys:write",
		summary: "Replace an API key by one with the same settings. The same token tells the same secret for an hour.",
		body: "ManagementKeyRotate",
		answer: "ManagementKeyRotated",
		token: "optional",
		fenced: true,
	},
	listAdjustments: {
		method: "GET",
		path: "/v1/management/credit-adjustments",
		scope: "credit:read",
		summary: "Credit that was moved by hand, newest first.",
		query: ["limit", "after", "account_id", "state"],
		answer: "ManagementAdjustmentList",
	},
	createAdjustment: {
		method: "POST",
		path: "/v1/management/credit-adjustments",
		scope: "credit:write",
		summary: "Move an account's credit by hand, once for each token; a large one waits for a second operator.",
		body: "ManagementAdjustmentCreate",
		answer: "ManagementAdjustment",
		token: "required",
	},
	readAdjustment: {
		method: "GET",
		path: "/v1/management/credit-adjustments/{id}",
		scope: "credit:read",
		summary: "One adjustment, and whether it was booked.",
		answer: "ManagementAdjustment",
	},
	listUsage: {
		method: "GET",
		path: "/v1/management/usage",
		scope: "usage:read",
		summary: "Usage by account, day, key and model, a row each, from sums that follow within seconds.",
		query: ["limit", "after", "account_id", "key_id", "model", "from", "to"],
		answer: "ManagementUsageList",
	},
	readCatalog: {
		method: "GET",
		path: "/v1/management/catalog",
		scope: "catalog:read",
		summary: "Which catalogue the live gateways serve, by its digest.",
		answer: "ManagementCatalog",
	},
	listModels: {
		method: "GET",
		path: "/v1/management/models",
		scope: "catalog:read",
		summary: "The models that are served, in the order of the catalogue.",
		answer: "ManagementModelList",
	},
	listDeployments: {
		method: "GET",
		path: "/v1/management/deployments",
		scope: "catalog:read",
		summary: "Their servers, with the worst health that any gateway sees.",
		answer: "ManagementDeploymentList",
	},
});

export type ManagementRouteName = keyof typeof MANAGEMENT_ROUTES;
