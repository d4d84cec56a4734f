/** The management interface's part of the OpenAPI document, generated from its routes. */
import type { TSchema } from "@sinclair/typebox";
import type { DocumentPart, Failures } from "../gateway/openapi/openapi.ts";
import { MANAGEMENT_QUERY, MANAGEMENT_ROUTES, type ManagementRoute } from "./management-routes.ts";
import { MANAGEMENT_ANSWERS, MANAGEMENT_REQUESTS } from "./management-schemas.ts";

type Json = Readonly<Record<string, unknown>>;

const IF_MATCH = {
	name: "If-Match",
	in: "header",
	required: false,
	schema: { type: "string" },
	description: "The `ETag` that was read: 412 if the resource was changed since. It covers what can be changed.",
};
const ID = { name: "id", in: "path", required: true, schema: { type: "string" } };
const ETAG = { description: "Names the state of what can be changed.", schema: { type: "string" } };

function token(isRequired: boolean): Json {
	return {
		name: "Idempotency-Key",
		in: "header",
		required: false,
		schema: { type: "string", pattern: "^[\\x21-\\x7e]{1,255}$" },
		description: `Repeated with it a creation makes no second one. The field \`client_token\` is the same${isRequired ? "; one of them is required" : ""}.`,
	};
}

function operation(route: ManagementRoute, failures: Failures): Json {
	const query = route.query.map((name) => {
		const { description, ...schema }: TSchema = MANAGEMENT_QUERY[name];
		const required = ["from", "to"].includes(name) || (name === "account_id" && route.answer === "ManagementKeyList");
		return { name, in: "query", required, schema, ...(description === undefined ? {} : { description }) };
	});
	const parameters = [
		...(route.path.includes("{id}") ? [ID] : []),
		...query,
		...(route.token ? [token(route.body === "ManagementAdjustmentCreate")] : []),
		...(route.conditional ? [IF_MATCH] : []),
	];
	const content = (name: string) => ({ "application/json": { schema: { $ref: `#/components/schemas/${name}` } } });
	const answer = {
		headers: { "x-request-id": { schema: { type: "string" } }, ...(route.conditional ? { etag: ETAG } : {}) },
		content: content(route.answer),
	};
	const late = { description: "Done, and not in force on all instances yet: see `in_force`.", ...answer };
	return {
		summary: route.summary,
		description: route.scope === null ? "Any management key." : `Scope \`${route.scope}\`.`,
		security: [{ managementKey: [] }],
		parameters,
		...(route.body === undefined
			? {}
			: { requestBody: { required: !mayBeLeftOut(route.body), content: content(route.body) } }),
		responses: {
			"200": { description: "The answer.", ...answer },
			...(route.fenced ? { "202": late } : {}),
			...failures(
				...[400, 401, 403, 404],
				...(route.method === "GET" ? [] : [408, 409, 413, 415]),
				...(route.conditional ? [412] : []),
				...(route.token ? [422] : []),
				...[429, 500, 503],
			),
		},
	};
}

/** A body without fields is omitted. */
function mayBeLeftOut(body: keyof typeof MANAGEMENT_REQUESTS): boolean {
	return Object.keys(MANAGEMENT_REQUESTS[body].properties).length === 0;
}

export function managementDocument(failures: Failures): DocumentPart {
	const paths: Record<string, Record<string, Json>> = {};
	for (const route of Object.values(MANAGEMENT_ROUTES)) {
		paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(route, failures) };
	}
	const managementKey = {
		type: "http",
		scheme: "bearer",
		description:
			"`Authorization: Bearer tgm_…`: a key of operators, with scopes, for `/v1/management/` alone; API keys do not work there.",
	};
	return { paths, securitySchemes: { managementKey }, schemas: { ...MANAGEMENT_REQUESTS, ...MANAGEMENT_ANSWERS } };
}
