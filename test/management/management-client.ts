import { createManagementKey } from "../../src/keys/management-key-admin.ts";
import { MANAGEMENT_SCOPES, type ManagementScope } from "../../src/keys/management-scope.ts";
import { createDigest } from "../../src/keys/secret.ts";
import type { TestService } from "../support/service.ts";

export interface ManagementAnswer {
	readonly status: number;
	readonly headers: Headers;
	// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every route.
	readonly body: any;
}

export interface ManagementClient {
	readonly id: string;
	readonly secret: string;
	get(path: string): Promise<ManagementAnswer>;
	send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<ManagementAnswer>;
}

export interface ManagementKeyOptions {
	readonly scopes?: readonly ManagementScope[];
	readonly expiresAtMs?: number;
	/** Id of the operator who creates the key; by default the command line does. */
	readonly madeBy?: string;
}

/** A client with a management key of the given scopes; default: all. Paths are relative to `/v1/management`. */
export async function managementClient(
	service: TestService,
	{ scopes = MANAGEMENT_SCOPES, expiresAtMs, madeBy = "cli" }: ManagementKeyOptions = {},
): Promise<ManagementClient> {
	const maker = {
		statements: service.db.statements,
		digest: createDigest(service.app.secrets.keyPepper),
		serviceName: service.app.config.serviceName,
	};
	const wanted = { name: "a script", scopes, expiresAtMs: expiresAtMs ?? null };
	const { id, secret } = await createManagementKey(maker, wanted, { id: madeBy, ip: null });
	const by = (method: string, path: string, init: RequestInit = {}) =>
		managementCall(service, secret, method, path, init);
	return {
		id,
		secret,
		get: (path) => by("GET", path),
		send: (method, path, body = {}, headers = {}) =>
			by(method, path, { body: JSON.stringify(body), headers: { "content-type": "application/json", ...headers } }),
	};
}

export async function managementCall(
	service: Pick<TestService, "url">,
	secret: string | undefined,
	method: string,
	path: string,
	init: RequestInit = {},
): Promise<ManagementAnswer> {
	const headers = new Headers(init.headers);
	if (secret !== undefined) headers.set("authorization", `Bearer ${secret}`);
	const response = await fetch(`${service.url}/v1/management${path}`, { ...init, method, headers });
	const text = await response.text();
	return { status: response.status, headers: response.headers, body: text === "" ? undefined : JSON.parse(text) };
}

export async function memberOf({ db: { sql } }: Pick<TestService, "db">, accountId: string): Promise<string> {
	const id = crypto.randomUUID();
	await sql`insert into console_user (id, name, email, email_verified) values (${id}, 'Somebody', ${`${id}@example.com`}, true)`;
	await sql`insert into member (user_id, account_id, role) values (${id}, ${accountId}, 'developer')`;
	return id;
}
