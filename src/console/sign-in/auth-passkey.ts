import type { AuthenticationResponseJSON, RegistrationResponseJSON } from "@simplewebauthn/server";
import type { BetterAuthPlugin, GenericEndpointContext } from "better-auth";
import { createAuthEndpoint, getSessionFromCtx } from "better-auth/api";
import { setSessionCookie } from "better-auth/cookies";
import { auditNote, auditNotesJson } from "../../ops/audit.ts";
import { AUTHENTICATED_FOR_MS } from "../console-session.ts";
import { createOneTimeValues, readLanguage, type SignIn, textField } from "./auth-request.ts";
import { signInError } from "./sign-in-error.ts";

type Passkeys = SignIn<"statements" | "mails" | "serviceName" | "origins">;

const PASSKEYS_MAX = 20;
const NAME_CHARS_MAX = 60;
const VALID_MINUTES = 5;

interface Stored {
	id: string;
	user_id: string;
	public_key: string;
	counter: string;
}

/**
 * Sign-in with passkeys. A passkey with user verification counts as two factors, so no code is requested. The library
 * is loaded on first use.
 */
export function passkeyPlugin(parts: Passkeys) {
	const challenges = createOneTimeValues(parts.statements, { cookie: "passkey", minutes: VALID_MINUTES });
	return {
		id: "passkey",
		endpoints: { ...registering(parts, challenges), ...signingIn(parts, challenges) },
	} satisfies BetterAuthPlugin;
}

function registering({ statements, mails, serviceName, origins }: Passkeys, challenges: Challenges) {
	return {
		/** Options for `navigator.credentials.create`. Error REAUTHENTICATE if the sign-in is older than 15 minutes. */
		beginPasskey: createAuthEndpoint("/passkey/register-begin", { method: "POST" }, async (ctx) => {
			const { user } = await lately(ctx);
			const held = await statements<{ id: string }>`select id from passkey where user_id = ${user.id}`;
			if (held.length >= PASSKEYS_MAX)
				throw signInError("TOO_MANY", "You can have at most {count} passkeys.", { values: { count: PASSKEYS_MAX } });
			const webauthn = await import("@simplewebauthn/server");
			const asked = await webauthn.generateRegistrationOptions({
				rpName: serviceName,
				rpID: siteOf(ctx, origins).rpId,
				userName: user.email,
				userDisplayName: user.name,
				userID: new Uint8Array(new TextEncoder().encode(user.id)),
				attestationType: "none",
				excludeCredentials: held,
				authenticatorSelection: { residentKey: "required", userVerification: "required" },
			});
			await challenges.keep(ctx, "register", `${user.id} ${asked.challenge}`);
			return ctx.json(asked);
		}),
		endPasskey: createAuthEndpoint("/passkey/register-end", { method: "POST" }, async (ctx) => {
			const { user } = await lately(ctx);
			const name = textField(ctx.body, "name").trim().slice(0, NAME_CHARS_MAX);
			const { origin, rpId } = siteOf(ctx, origins);
			const [userId, challenge = ""] = ((await challenges.take(ctx, "register")) ?? "").split(" ");
			if (userId !== user.id || name === "" || /\p{C}/u.test(name)) throw notGood();
			const webauthn = await import("@simplewebauthn/server");
			const checked = await webauthn
				.verifyRegistrationResponse({
					response: responseOf(ctx.body),
					expectedChallenge: challenge,
					expectedOrigin: origin,
					expectedRPID: rpId,
					requireUserVerification: true,
				})
				.catch(() => undefined);
			if (!checked?.verified) throw notGood();
			const { credential } = checked.registrationInfo;
			const publicKey = Buffer.from(credential.publicKey).toString("base64url");
			const act = auditNote({ actor: user.id, action: "passkey.add", ip: null });
			const [row] = await statements<{ added: boolean }>`
				select added, audit_note(${auditNotesJson(act)}::text::jsonb, ${user.id}, null)
				from passkey_add(${credential.id}, ${user.id}, ${name}, ${publicKey}, ${credential.counter}::bigint, ${PASSKEYS_MAX}::integer) as added
				where added`;
			if (row?.added !== true) throw notGood();
			mails.changed(user.email, readLanguage(ctx), "passkey added");
			return ctx.json({ status: true });
		}),
	};
}

function signingIn({ statements, origins }: Passkeys, challenges: Challenges) {
	return {
		/**
		 * Returns options for `navigator.credentials.get` that accept any passkey of this site: a list of passkeys would
		 * reveal which accounts have one.
		 */
		beginPasskeySignIn: createAuthEndpoint("/passkey/sign-in-begin", { method: "POST" }, async (ctx) => {
			const webauthn = await import("@simplewebauthn/server");
			const asked = await webauthn.generateAuthenticationOptions({
				rpID: siteOf(ctx, origins).rpId,
				userVerification: "required",
			});
			await challenges.keep(ctx, "sign-in", asked.challenge);
			return ctx.json(asked);
		}),
		endPasskeySignIn: createAuthEndpoint("/passkey/sign-in-end", { method: "POST" }, async (ctx) => {
			const { origin, rpId } = siteOf(ctx, origins);
			const challenge = await challenges.take(ctx, "sign-in");
			if (challenge === undefined) throw notGood();
			const response = responseOf(ctx.body);
			const [stored] = await statements<Stored>`
				select p.id, p.user_id, p.public_key, p.counter from passkey p join console_user u on u.id = p.user_id
				where p.id = ${String(response.id)} and u.email_verified`;
			if (stored === undefined) throw notGood();
			const webauthn = await import("@simplewebauthn/server");
			const checked = await webauthn
				.verifyAuthenticationResponse({
					response,
					expectedChallenge: challenge,
					expectedOrigin: origin,
					expectedRPID: rpId,
					requireUserVerification: true,
					credential: {
						id: stored.id,
						publicKey: new Uint8Array(Buffer.from(stored.public_key, "base64url")),
						counter: Number(stored.counter),
					},
				})
				.catch(() => undefined);
			if (!checked?.verified) throw notGood();
			// The stored passkey determines the person. A counter that does not grow means a copied passkey.
			const { newCounter } = checked.authenticationInfo;
			const used = await statements`
				update passkey set counter = ${newCounter}::bigint, last_used_at = clock_timestamp()
				where id = ${stored.id} and (counter < ${newCounter}::bigint or ${newCounter}::bigint = 0) returning id`;
			if (used.length === 0) throw notGood();
			const user = await ctx.context.internalAdapter.findUserById(stored.user_id);
			if (user === null) throw notGood();
			const session = await ctx.context.internalAdapter.createSession(user.id);
			// Checks again: a concurrent password reset may have deleted the passkey before this session existed.
			const still = await statements`select 1 from passkey where id = ${stored.id}`;
			if (still.length === 0) {
				await statements`delete from session where id = ${session.id}`;
				throw notGood();
			}
			await setSessionCookie(ctx, { session, user });
			return ctx.json({ status: true });
		}),
	};
}

function siteOf(ctx: GenericEndpointContext, origins: readonly string[]): { origin: string; rpId: string } {
	const origin = origins.find((one) => one === ctx.headers?.get("origin"));
	if (origin === undefined) throw signInError("FORBIDDEN", "This request was not sent from a page of this service.");
	return { origin, rpId: new URL(origin).hostname };
}

/** Returns the session if its sign-in, or its last password entry, is at most 15 minutes old; throws otherwise. */
async function lately(ctx: GenericEndpointContext) {
	const present = await getSessionFromCtx(ctx);
	if (present === null) throw signInError("SESSION_REQUIRED", "Please sign in.", { status: "UNAUTHORIZED" });
	const { createdAt, authenticatedAt } = present.session;
	const at = authenticatedAt instanceof Date ? authenticatedAt : createdAt;
	if (Date.now() - at.getTime() > AUTHENTICATED_FOR_MS)
		throw signInError("reauthentication_required", "Enter your password again to continue.", { status: "FORBIDDEN" });
	return present;
}

/** Checks only that the response is an object; the library validates the rest. */
function responseOf(body: unknown): AuthenticationResponseJSON & RegistrationResponseJSON {
	const response = typeof body === "object" && body !== null ? (body as { response?: unknown }).response : undefined;
	if (typeof response !== "object" || response === null) throw notGood();
	return response as AuthenticationResponseJSON & RegistrationResponseJSON;
}

type Challenges = ReturnType<typeof createOneTimeValues>;

const notGood = () => signInError("PASSKEY_REFUSED", "This passkey was not accepted. Try again.");
