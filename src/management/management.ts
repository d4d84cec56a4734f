import type { TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { Value } from "@sinclair/typebox/value";
import { createFairPool } from "../base/fair-pool.ts";
import { Fault } from "../base/fault.ts";
import { newRequestId } from "../base/id.ts";
import { parseIsoMs } from "../base/iso-date.ts";
import { assertStorable } from "../base/stored-text.ts";
import type { Parts } from "../console/console-deps.ts";
import { loggedFault } from "../console/console-error.ts";
import { createBodyReads } from "../gateway/body/body-reads.ts";
import { readJson } from "../gateway/body/json-body.ts";
import type { Connection } from "../gateway/connection.ts";
import { errorResponse } from "../gateway/error-body.ts";
import { jsonHeaders } from "../gateway/headers.ts";
import { assertBody } from "../gateway/request-fields.ts";
import { auditNote } from "../ops/audit.ts";
import { accountAnswers } from "./account-answers.ts";
import { checkScope, createKeyAuthenticator, type FoundKey, tooMany } from "./caller.ts";
import { creditAnswers } from "./credit-answers.ts";
import { keyAnswers } from "./key-answers.ts";
import { clientToken, ifMatch, type ManagementAnswer, type ManagementCall } from "./management-call.ts";
import type { ManagementQuery, ManagementRoute, ManagementRouteName } from "./management-routes.ts";
import { MANAGEMENT_PREFIX, MANAGEMENT_QUERY, MANAGEMENT_ROUTES } from "./management-routes.ts";
import { MANAGEMENT_REQUESTS } from "./management-schemas.ts";
import { projectAnswers, projectMemberAnswers } from "./project-answers.ts";
import { serviceAnswers } from "./service-answers.ts";

const BODY_BYTES_MAX = 64 * 1024;
/** Most concurrent requests, and the fraction for one key: a request that waits for a fence takes up to 45 s. */
const REQUESTS_MAX = 256;
const REQUESTS_SHARE = 3 / 4;

type RequestName = keyof typeof MANAGEMENT_REQUESTS;
type NamedRoute = { readonly name: ManagementRouteName; readonly id: string };
type Answers = { readonly [Name in ManagementRouteName]: (call: ManagementCall<Name>) => Promise<ManagementAnswer> };

type ManagementParts = Parts<"statements" | "tx" | "clock" | "log" | "keyMaker" | "fence" | "deployments" | "config">;

/** Serves `/v1/management/…` for operators' scripts, with management keys. The returned promise never rejects. */
export function createManagement(
	parts: ManagementParts,
	options: { mailOwners: Parameters<typeof keyAnswers>[1] },
): (connection: Connection) => Promise<Response> {
	const { clock, log } = parts;
	const callers = createKeyAuthenticator(parts);
	const bodyReads = createBodyReads(clock);
	const answers: Answers = {
		...accountAnswers(parts),
		...projectAnswers(parts),
		...projectMemberAnswers(parts),
		...keyAnswers(parts, options.mailOwners),
		...creditAnswers(parts),
		...serviceAnswers(parts),
	};
	const checks = Object.fromEntries(
		Object.entries(MANAGEMENT_REQUESTS).map(([name, schema]) => [name, TypeCompiler.Compile<TSchema>(schema)]),
	) as Record<RequestName, TypeCheck<TSchema>>;
	const places = createFairPool({ size: () => REQUESTS_MAX, share: () => REQUESTS_SHARE, own: tooMany, full: tooMany });

	async function bodyOf(connection: Connection, name: RequestName | undefined): Promise<unknown> {
		const { request } = connection;
		if (name === undefined) return undefined;
		const isEmpty = request.body === null || request.headers.get("content-length") === "0";
		const body = isEmpty ? {} : (await readJson(connection, BODY_BYTES_MAX, bodyReads)).value;
		assertBody(checks[name], body);
		assertStorable(body);
		return body;
	}

	async function answer(connection: Connection, requestId: string): Promise<Response> {
		const { method, url } = connection.request;
		const named = routeOf(method, new URL(url).pathname);
		const key = await callers.find(connection);
		places.take(key.id);
		return answerKey(key, connection, requestId, named).finally(() => places.giveBack(key.id));
	}

	async function answerKey(key: FoundKey, connection: Connection, requestId: string, { name, id }: NamedRoute) {
		const { request } = connection;
		const route: ManagementRoute = MANAGEMENT_ROUTES[name];
		const caller = await callers.identify(key);
		checkScope(caller, route.scope);
		const query = queryOf(new URL(request.url).searchParams, route);
		const body = await bodyOf(connection, route.body);
		// Checks the key a second time: it may have been revoked while the body arrived.
		const present = route.method === "GET" ? caller : await callers.again(caller);
		checkScope(present, route.scope);
		const by = { actor: present.id, ip: connection.address };
		const run = answers[name] as (call: ManagementCall) => Promise<ManagementAnswer>;
		const answered = await run({
			connection,
			caller: present,
			noted: (action, detail) => auditNote({ ...by, action, detail: { ...detail, operator: present.madeBy } }),
			id,
			query,
			body: body as ManagementCall["body"],
			token: route.token ? clientToken(request.headers, body) : null,
			match: route.conditional ? ifMatch(request.headers) : null,
		});
		const headers: Record<string, string> = jsonHeaders(requestId);
		if (answered.etag !== undefined) headers.etag = `"${answered.etag}"`;
		return new Response(JSON.stringify(answered), { status: isInForce(answered) ? 200 : 202, headers });
	}

	return async (connection) => {
		const { requestId } = newRequestId();
		try {
			return await answer(connection, requestId);
		} catch (error) {
			const response = errorResponse(loggedFault(error, requestId, log), requestId);
			if (error instanceof WrongMethod) response.headers.set("allow", error.allowed);
			return response;
		}
	};
}

class WrongMethod extends Fault {
	readonly allowed: string;

	constructor(allowed: string) {
		super("method_not_allowed", `Use ${allowed} for this endpoint.`);
		this.allowed = allowed;
	}
}

const NAMES = Object.keys(MANAGEMENT_ROUTES) as ManagementRouteName[];
const ID_CHARS_MAX = 64;

/** Finds the route. Faults `not_found`, `method_not_allowed`. */
function routeOf(method: string, pathname: string): NamedRoute {
	const parts = pathname.slice(MANAGEMENT_PREFIX.length).split("/");
	const id = parts[1] ?? "";
	const path = MANAGEMENT_PREFIX + (parts.length > 1 ? parts.with(1, "{id}") : parts).join("/");
	const found = NAMES.filter((name) => MANAGEMENT_ROUTES[name].path === path);
	if (found.length === 0 || (parts.length > 1 && (id === "" || id.length > ID_CHARS_MAX)))
		throw new Fault("not_found", "There is no such endpoint.");
	const name = found.find((one) => MANAGEMENT_ROUTES[one].method === method);
	if (name === undefined) throw new WrongMethod(found.map((one) => MANAGEMENT_ROUTES[one].method).join(", "));
	return { name, id };
}

/** Checks query parameters against their schemas. Fault `invalid_request`. */
function queryOf(given: URLSearchParams, route: ManagementRoute): ManagementCall["query"] {
	const query: Partial<Record<ManagementQuery, string>> = {};
	for (const [param, value] of given) {
		const name = route.query.find((one) => one === param);
		if (name === undefined || query[name] !== undefined)
			throw new Fault("invalid_request", "Unknown or repeated query parameter.", {
				param: /^\w{1,64}$/.test(param) ? param : null,
			});
		const isNoDay = (name === "from" || name === "to") && parseIsoMs(value) === undefined;
		const typed = name === "limit" && /^\d{1,9}$/.test(value) ? Number(value) : value;
		if (isNoDay || !Value.Check(MANAGEMENT_QUERY[name], typed))
			throw new Fault("invalid_request", `\`${name}\` has an invalid value.`, { param: name });
		query[name] = value;
	}
	return query;
}

/** False if the response's `in_force` says that some instances have not applied the change yet. */
function isInForce(answered: ManagementAnswer): boolean {
	const inForce = answered.in_force as { effective: boolean } | null | undefined;
	return inForce === null || inForce === undefined || inForce.effective;
}
