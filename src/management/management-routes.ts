/** The table of the management interface: served, checked, described and listed in its paper. */
import type { Static } from "@sinclair/typebox";
import type { ManagementScope } from "../keys/management-scope.ts";
import { MANAGEMENT_ANSWERS, MANAGEMENT_REQUESTS } from "./management-schemas.ts";

type RequestName = keyof typeof MANAGEMENT_REQUESTS;
type AnswerName = keyof typeof MANAGEMENT_ANSWERS;
/** Query parameters; `MANAGEMENT_QUERY` has their schemas. */
export type ManagementQuery = keyof typeof MANAGEMENT_QUERY;

export interface ManagementRoute {
	readonly method: "GET" | "POST" | "PATCH";
	readonly path: string;
	/** Null: any management key. */
	readonly scope: ManagementScope | null;
	readonly summary: string;
	readonly query: readonly ManagementQuery[];
	readonly body: RequestName | undefined;
	readonly answer: AnswerName;
	/** Creates something: a client token makes it repeatable. */
	readonly token: boolean;
	/** Takes `If-Match`. */
	readonly conditional: boolean;
	/** Waits until all instances apply the change: 202 if some may not when the wait ends. */
	readonly fenced: boolean;
}

export const MANAGEMENT_PREFIX = "/v1/management/";

const day = { type: "string", pattern: "^[1-9]\\d{3}-\\d\\d-\\d\\d$" } as const;
export const MANAGEMENT_QUERY = {
	limit: { type: "integer", minimum: 1, maximum: 200, description: "Rows of a page; 50 if it is not given." },
	after: { type: "string", maxLength: 512, description: "The `next` of the page before." },
	email: { type: "string", maxLength: 320, description: "The one account with this address." },
	account_id: { type: "string", maxLength: 64 },
	key_id: { type: "string", maxLength: 64 },
	model: { type: "string", maxLength: 200 },
	state: { type: "string", enum: ["pending", "booked", "rejected"] },
	from: { ...day, description: "The first day, in UTC." },
	to: { ...day, description: "The last day, in UTC, itself included." },
} as const;

/** A route without its summary. `body`: the name of its schema; further properties follow from both schemas. */
function on<Body extends RequestName | undefined = undefined>(
	place: `${ManagementRoute["method"]} ${string}`,
	scope: ManagementScope | null,
	answer: AnswerName,
	{ body, query = [] }: { body?: Body; query?: readonly ManagementQuery[] } = {},
) {
	const [method, path] = place.split(" ") as [ManagementRoute["method"], string];
	const asked = body === undefined ? {} : MANAGEMENT_REQUESTS[body].properties;
	return {
		method,
		path: MANAGEMENT_PREFIX + path,
		scope,
		query,
		body: body as Body,
		answer,
		token: "client_token" in asked,
		conditional: method === "PATCH",
		fenced: "in_force" in MANAGEMENT_ANSWERS[answer].properties,
	};
}

const page = ["limit", "after"] as const;

export const MANAGEMENT_ROUTES = {
	self: { ...on("GET self", null, "ManagementSelf"), summary: "The calling management key and its scopes." },
	listAccounts: {
		...on("GET accounts", "accounts:read", "ManagementAccountList", { query: [...page, "email"] }),
		summary: "Accounts, newest first.",
	},
	createAccount: {
		...on("POST accounts", "accounts:write", "ManagementAccount", { body: "ManagementAccountCreate" }),
		summary: "Make an account without credit; it counts as signed in.",
	},
	readAccount: { ...on("GET accounts/{id}", "accounts:read", "ManagementAccount"), summary: "One account." },
	updateAccount: {
		...on("PATCH accounts/{id}", "accounts:write", "ManagementAccountChanged", { body: "ManagementAccountUpdate" }),
		summary: "Rename an account, suspend it or lift its suspension; a change of state needs a reason.",
	},
	readCredit: {
		...on("GET accounts/{id}/credit", "credit:read", "ManagementCredit"),
		summary: "An account's credit: balance, held, available and spent.",
	},
	listProjects: {
		...on("GET accounts/{id}/projects", "projects:read", "ManagementProjectList", { query: page }),
		summary: "An account's projects, newest first, archived ones too.",
	},
	createProject: {
		...on("POST accounts/{id}/projects", "projects:write", "ManagementProject", { body: "ManagementProjectCreate" }),
		summary: "Make a project: a budget, models and limits for some of an account's keys.",
	},
	readProject: { ...on("GET projects/{id}", "projects:read", "ManagementProject"), summary: "One project." },
	updateProject: {
		...on("PATCH projects/{id}", "projects:write", "ManagementProjectChanged", { body: "ManagementProjectUpdate" }),
		summary: "Change a project's name, cap, models or limits; `null` takes one away.",
	},
	archiveProject: {
		...on("POST projects/{id}/archive", "projects:write", "ManagementProjectChanged", {
			body: "ManagementProjectArchive",
		}),
		summary: "End a project with all its keys everywhere, for good. Repeating it changes nothing.",
	},
	listProjectMembers: {
		...on("GET projects/{id}/members", "projects:read", "ManagementProjectMemberList"),
		summary: "Who works in a project, in the order in which they joined.",
	},
	addProjectMember: {
		...on("POST projects/{id}/members", "projects:write", "ManagementProjectMember", {
			body: "ManagementProjectMemberAdd",
		}),
		summary: "Let a member of the account work in a project. Repeating it changes nothing.",
	},
	removeProjectMember: {
		...on("POST projects/{id}/members/remove", "projects:write", "ManagementProjectMemberRemoved", {
			body: "ManagementProjectMemberRemove",
		}),
		summary: "Remove a member from a project; the keys that the member made in it are kept or revoked, as requested.",
	},
	listKeys: {
		...on("GET keys", "keys:read", "ManagementKeyList", { query: [...page, "account_id"] }),
		summary: "An account's API keys, newest first, revoked ones too.",
	},
	createKey: {
		...on("POST keys", "keys:write", "ManagementKeyMade", { body: "ManagementKeyCreate" }),
		summary: "Create an API key. Its secret is returned once, and again to the same token within a day.",
	},
	readKey: { ...on("GET keys/{id}", "keys:read", "ManagementKey"), summary: "One API key." },
	updateKey: {
		...on("PATCH keys/{id}", "keys:write", "ManagementKeyChanged", { body: "ManagementKeyUpdate" }),
		summary: "Change an API key's name, cap, models, expiry or limits; `null` takes one away.",
	},
	revokeKey: {
		...on("POST keys/{id}/revoke", "keys:write", "ManagementKeyChanged", { body: "ManagementKeyRevoke" }),
		summary: "End an API key everywhere. Repeating it changes nothing.",
	},
	rotateKey: {
		...on("POST keys/{id}/rotate", "keys:write", "ManagementKeyRotated", { body: "ManagementKeyRotate" }),
		summary: "Replace an API key by one with the same settings. The same token tells the same secret for an hour.",
	},
	listAdjustments: {
		...on("GET credit-adjustments", "credit:read", "ManagementAdjustmentList", {
			query: [...page, "account_id", "state"],
		}),
		summary: "Credit that was moved by hand, newest first.",
	},
	createAdjustment: {
		...on("POST credit-adjustments", "credit:write", "ManagementAdjustment", { body: "ManagementAdjustmentCreate" }),
		summary: "Move an account's credit by hand, once for each token; a large one waits for a second operator.",
	},
	readAdjustment: {
		...on("GET credit-adjustments/{id}", "credit:read", "ManagementAdjustment"),
		summary: "One adjustment, and whether it was booked.",
	},
	listUsage: {
		...on("GET usage", "usage:read", "ManagementUsageList", {
			query: [...page, "account_id", "key_id", "model", "from", "to"],
		}),
		summary: "Usage by account, day, key and model, a row each, from sums that follow within seconds.",
	},
	readCatalog: {
		...on("GET catalog", "catalog:read", "ManagementCatalog"),
		summary: "Which catalogue the live gateways serve, by its digest.",
	},
	listModels: {
		...on("GET models", "catalog:read", "ManagementModelList"),
		summary: "The models that are served, in the order of the catalogue.",
	},
	listDeployments: {
		...on("GET deployments", "catalog:read", "ManagementDeploymentList"),
		summary: "Their servers, with the worst health that any gateway sees.",
	},
} satisfies Readonly<Record<string, ManagementRoute>>;

export type ManagementRouteName = keyof typeof MANAGEMENT_ROUTES;
/** Body type of a route. */
export type BodyOf<Name extends ManagementRouteName> = (typeof MANAGEMENT_ROUTES)[Name]["body"] extends infer Body
	? Body extends RequestName
		? Static<(typeof MANAGEMENT_REQUESTS)[Body]>
		: undefined
	: never;
