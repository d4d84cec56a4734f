import { createOperator } from "../../src/console/operator/operator-admin.ts";
import type { TestDatabase } from "../support/database.ts";
import { MAIL_ENV, newMail } from "./mailbox.ts";

/** A service, in this process or another, at which people can sign up. */
export interface PeopledService {
	readonly url: string;
	readonly db: Pick<TestDatabase, "statements">;
}

/** Each person gets a different IP address, so that rate limits by address do not affect other tests. */
export const PERSON_ENV = { TRUSTED_PROXIES: "127.0.0.1", ...MAIL_ENV };
export const PASSWORD = "correct horse battery staple";

export interface Answer {
	readonly status: number;
	readonly headers: Headers;
	// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every route.
	readonly body: any;
}

/** A person's browser: keeps cookies, and sends the Origin header with each change. */
export interface Person {
	readonly email: string;
	readonly address: string;
	readonly cookies: Map<string, string>;
	get(path: string, init?: RequestInit): Promise<Answer>;
	send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
	fetch(path: string, init?: RequestInit): Promise<Response>;
}

let lastAddress = 0;

export function newPerson(service: PeopledService, email = `${crypto.randomUUID()}@example.com`): Person {
	const cookies = new Map<string, string>();
	lastAddress += 1;
	const address = `10.0.${lastAddress >> 8}.${lastAddress & 255}`;

	async function send(path: string, init: RequestInit = {}): Promise<Response> {
		const headers = new Headers(init.headers);
		if (cookies.size > 0) headers.set("cookie", [...cookies].map(([name, value]) => `${name}=${value}`).join("; "));
		headers.set("x-forwarded-for", address);
		const response = await fetch(path.startsWith("http") ? path : `${service.url}${path}`, {
			redirect: "manual",
			...init,
			headers,
		});
		for (const line of response.headers.getSetCookie()) {
			const [pair = ""] = line.split(";");
			const name = pair.slice(0, pair.indexOf("="));
			if (/max-age=0/i.test(line)) cookies.delete(name);
			else cookies.set(name, pair.slice(pair.indexOf("=") + 1));
		}
		return response;
	}

	async function answerOf(response: Response): Promise<Answer> {
		const text = await response.text();
		const isJson = response.headers.get("content-type")?.includes("json") ?? false;
		return {
			status: response.status,
			headers: response.headers,
			body: isJson && text !== "" ? JSON.parse(text) : text,
		};
	}

	return {
		email,
		address,
		cookies,
		fetch: send,
		get: async (path, init) => answerOf(await send(path, init)),
		send: async (method, path, body = {}, headers = {}) =>
			answerOf(
				await send(path, {
					method,
					headers: { origin: service.url, "content-type": "application/json", ...headers },
					body: JSON.stringify(body),
				}),
			),
	};
}

/** Returns the link in the newest unread mail to a person. */
export async function mailedLink(person: Pick<Person, "email">): Promise<string> {
	const { text } = await newMail(person.email);
	const link = /https?:\/\/\S+/.exec(text)?.[0];
	if (link === undefined) throw new Error(`no link in ${JSON.stringify(text)}`);
	return link;
}

/** Opens the link in the newest mail, and submits the form of its page. */
export async function confirmAddress(person: Person, more: Record<string, unknown> = {}): Promise<Answer> {
	const token = new URL(await mailedLink(person)).searchParams.get("token");
	return person.send("POST", "/api/auth/verify-email", { token, ...more });
}

/** Creates a person with a verified address, a session and an account. */
export async function signedUp(
	service: PeopledService,
	more: Record<string, unknown> = {},
): Promise<Person & { accountId: string }> {
	const person = newPerson(service);
	const up = await person.send("POST", "/api/auth/sign-up/email", {
		name: "Test Person",
		email: person.email,
		password: PASSWORD,
		next: "/overview",
		...more,
	});
	if (up.status !== 200) throw new Error(`sign-up: ${up.status} ${JSON.stringify(up.body)}`);
	await confirmAddress(person);
	const me = await person.get("/api/console/me");
	if (me.status !== 200) throw new Error(`me: ${me.status} ${JSON.stringify(me.body)}`);
	return { ...person, accountId: me.body.account.id };
}

export async function operator(service: PeopledService): Promise<Person> {
	const person = newPerson(service);
	const { token } = await createOperator(service.db.statements, person.email);
	const reset = await person.send("POST", "/api/auth/reset-password", { newPassword: PASSWORD, token });
	if (reset.status !== 200) throw new Error(`reset: ${reset.status} ${JSON.stringify(reset.body)}`);
	const signIn = await person.send("POST", "/api/auth/sign-in/email", { email: person.email, password: PASSWORD });
	if (signIn.status !== 200) throw new Error(`sign-in: ${signIn.status} ${JSON.stringify(signIn.body)}`);
	return person;
}

export async function topUp(customer: Person, confirmer: Person, usd = "100"): Promise<string> {
	const { id } = (await customer.send("POST", "/api/console/credit/top-ups/transfer", { usd })).body.topUp;
	await confirmer.send("POST", `/api/console/operator/top-ups/${id}/confirm`, { transactionReference: `bank ${id}` });
	return id;
}
