/** Table of the management interface, used by routing, checks, the OpenAPI document and the README. */
import { type Static, Type } from "@sinclair/typebox";
import { oneOf } from "../gateway/openapi/openapi-text-answers.ts";
import type { ManagementScope } from "../keys/management-scope.ts";
import { MANAGEMENT_ANSWERS, MANAGEMENT_REQUESTS } from "./management-schemas.ts";

type RequestName = keyof typeof MANAGEMENT_REQUESTS;
type AnswerName = keyof typeof MANAGEMENT_ANSWERS;
export type ManagementQuery = keyof typeof MANAGEMENT_QUERY;

export interface ManagementRoute {
	readonly method: "GET" | "POST" | "PATCH";
	readonly path: string;
	/** Required scope; null: any management key suffices. */
	readonly scope: ManagementScope | null;
	readonly summary: string;
	readonly query: readonly ManagementQuery[];
	readonly body: RequestName | undefined;
	readonly answer: AnswerName;
	/** True if the route creates an object: with a client token a repeated call creates it once. */
	readonly token: boolean;
	/** True if the route supports `If-Match`. */
	readonly conditional: boolean;
	/** True if the route waits until all instances have applied the change. After the deadline the status is 202. */
	readonly fenced: boolean;
}

export const MANAGEMENT_PREFIX = "/v1/management/";

const text = (maxLength: number, options = {}) => Type.String({ minLength: 1, maxLength, ...options });
const day = (description: string) => Type.String({ pattern: "^[1-9]\\d{3}-\\d\\d-\\d\\d$", description });
export const MANAGEMENT_QUERY = {
	limit: Type.Integer({ minimum: 1, maximum: 200, description: "Rows per page; the default is 50." }),
	after: text(512, { description: "The `next` value of the previous page." }),
	email: text(320, { description: "Returns only the account with this address." }),
	account_id: text(64),
	key_id: text(64),
	model: text(200),
	state: oneOf("pending", "booked", "rejected"),
	from: day("The first day, in UTC."),
	to: day("The last day, in UTC, inclusive."),
};

/** Defines a route; the returned function takes its summary. `body` names the schema of the request body. */
function on<Body extends RequestName | undefined = undefined>(
	place: `${ManagementRoute["method"]} ${string}`,
	scope: ManagementScope | null,
	answer: AnswerName,
	{ body, query = [] }: { body?: Body; query?: readonly ManagementQuery[] } = {},
) {
	const [method, path] = place.split(" ") as [ManagementRoute["method"], string];
	const asked = body === undefined ? {} : MANAGEMENT_REQUESTS[body].properties;
	return (summary: string) => ({
		method,
		path: MANAGEMENT_PREFIX + path,
		scope,
		summary,
		query,
		body: body as Body,
		answer,
		token: "client_token" in asked,
		conditional: method === "PATCH",
		fenced: "in_force" in MANAGEMENT_ANSWERS[answer].properties,
	});
}

const page = ["limit", "after"] as const;

export const MANAGEMENT_ROUTES = {
	self: on("GET self", null, "ManagementSelf")("The calling management key and its scopes."),
	listAccounts: on("GET accounts", "accounts:read", "ManagementAccountList", { query: [...page, "email"] })(
		"Accounts, newest first.",
	),
	createAccount: on("POST accounts", "accounts:write", "ManagementAccount", { body: "ManagementAccountCreate" })(
		"Create an account without credit. Its keys work before an owner has signed in.",
	),
	readAccount: on("GET accounts/{id}", "accounts:read", "ManagementAccount")("An account."),
	updateAccount: on("PATCH accounts/{id}", "accounts:write", "ManagementAccountChanged", {
		body: "ManagementAccountUpdate",
	})("Update an account's name, time zone, tags, limit or state. A change of state needs a `reason`."),
	readCredit: on(
		"GET accounts/{id}/credit",
		"credit:read",
		"ManagementCredit",
	)("An account's credit: balance, held, available, spent, and unspent promotional credit."),
	listProjects: on("GET accounts/{id}/projects", "projects:read", "ManagementProjectList", { query: page })(
		"An account's projects, newest first, including archived ones.",
	),
	createProject: on("POST accounts/{id}/projects", "projects:write", "ManagementProject", {
		body: "ManagementProjectCreate",
	})("Create a project: a budget, models and limits for some of an account's keys."),
	readProject: on("GET projects/{id}", "projects:read", "ManagementProject")("A project."),
	updateProject: on("PATCH projects/{id}", "projects:write", "ManagementProjectChanged", {
		body: "ManagementProjectUpdate",
	})("Update a project's name, cap, models or limits; `null` removes a value."),
	archiveProject: on("POST projects/{id}/archive", "projects:write", "ManagementProjectChanged", {
		body: "ManagementProjectArchive",
	})("Archive a project and revoke all its keys, permanently. Idempotent."),
	listProjectMembers: on(
		"GET projects/{id}/members",
		"projects:read",
		"ManagementProjectMemberList",
	)("Members of a project, in the order of joining."),
	addProjectMember: on("POST projects/{id}/members", "projects:write", "ManagementProjectMember", {
		body: "ManagementProjectMemberAdd",
	})("Add a member of the account to a project. Idempotent."),
	removeProjectMember: on("POST projects/{id}/members/remove", "projects:write", "ManagementProjectMemberRemoved", {
		body: "ManagementProjectMemberRemove",
	})(
		"Remove a member from a project. `keys` decides whether the keys that the member created in it are kept or revoked.",
	),
	listKeys: on("GET keys", "keys:read", "ManagementKeyList", { query: [...page, "account_id"] })(
		"An account's API keys, newest first, including revoked ones.",
	),
	createKey: on("POST keys", "keys:write", "ManagementKeyMade", { body: "ManagementKeyCreate" })(
		"Create an API key. The secret is returned once, and again for the same token within a day; it is null if the account has owners.",
	),
	readKey: on("GET keys/{id}", "keys:read", "ManagementKey")("An API key."),
	updateKey: on("PATCH keys/{id}", "keys:write", "ManagementKeyChanged", { body: "ManagementKeyUpdate" })(
		"Update an API key's name, cap, models, expiry or limits; `null` removes a value.",
	),
	revokeKey: on("POST keys/{id}/revoke", "keys:write", "ManagementKeyChanged", { body: "ManagementKeyRevoke" })(
		"Revoke an API key. Idempotent.",
	),
	rotateKey: on("POST keys/{id}/rotate", "keys:write", "ManagementKeyRotated", { body: "ManagementKeyRotate" })(
		"Replace an API key with a new one that has the same settings. The same token returns the same secret for an hour; the secret is null if the account has owners.",
	),
	listAdjustments: on("GET credit-adjustments", "credit:read", "ManagementAdjustmentList", {
		query: [...page, "account_id", "state"],
	})("Credit adjustments, newest first, including promotional credit."),
	createAdjustment: on("POST credit-adjustments", "credit:write", "ManagementAdjustment", {
		body: "ManagementAdjustmentCreate",
	})(
		"Adjust an account's credit or give promotional credit, once per token. A large amount needs a second operator's confirmation.",
	),
	createPrices: on("POST accounts/{id}/prices", "credit:write", "ManagementPricesMade", {
		body: "ManagementPricesCreate",
	})(
		"Agree on a discount, own rates of a model, or neither for the list price, once per token. Prices far from the list need a second operator's confirmation.",
	),
	readAdjustment: on(
		"GET credit-adjustments/{id}",
		"credit:read",
		"ManagementAdjustment",
	)("A credit adjustment and its state."),
	listUsage: on("GET usage", "usage:read", "ManagementUsageList", {
		query: [...page, "account_id", "key_id", "model", "from", "to"],
	})("Usage per account, day, key and model, up to date within seconds."),
	listJournals: on(
		"GET journals",
		"credit:read",
		"ManagementJournalList",
	)("Closed months of the double-entry journal, newest first, with their liabilities."),
	readJournal: on(
		"GET journals/{id}",
		"credit:read",
		"ManagementJournal",
	)("A closed month of the journal: two lines for each entry, whose debits equal its credits."),
	readCatalog: on(
		"GET catalog",
		"catalog:read",
		"ManagementCatalog",
	)("Digest of the catalogue that the live gateways serve."),
	listModels: on(
		"GET models",
		"catalog:read",
		"ManagementModelList",
	)("The served models, in the order of the catalogue."),
	listDeployments: on(
		"GET deployments",
		"catalog:read",
		"ManagementDeploymentList",
	)("Model servers, with the worst health that any gateway reports."),
} satisfies Readonly<Record<string, ManagementRoute>>;

export type ManagementRouteName = keyof typeof MANAGEMENT_ROUTES;
export type RouteBody<Name extends ManagementRouteName> = (typeof MANAGEMENT_ROUTES)[Name]["body"] extends infer Body
	? Body extends RequestName
		? Static<(typeof MANAGEMENT_REQUESTS)[Body]>
		: undefined
	: never;
