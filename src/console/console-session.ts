import { assert } from "../base/assert.ts";
import type { Fault } from "../base/fault.ts";
import type { Connection } from "../gateway/connection.ts";
import { auditNote } from "../ops/audit.ts";
import { ConsoleError } from "./console-error.ts";
import type { AuditContext } from "./keys/fence-view.ts";
import { RIGHTS, type Right, type RightScope, ROLE_LABELS, scopeForRole } from "./members/roles.ts";
import type { Membership, Viewer } from "./viewer.ts";

export const AUTHENTICATED_FOR_MS = 15 * 60_000;

export interface ConsoleSession {
	readonly requestId: string;
	readonly connection: Connection;
	/** Signed-in person; null on public routes. */
	readonly viewer: Viewer | null;
	/** Finds the signed-in person and the account on public routes, whose answers show more to members. */
	readonly findViewer?: () => Promise<(Pick<ConsoleSession, "membership"> & { readonly viewer: Viewer }) | null>;
	/** The account of `?account=`, else the viewer's first; null if the viewer has none. */
	readonly membership: Membership | null;
}

/** A member with the required right, either for all objects of the account or only for the member's own (`scope`). */
export interface PermittedMember extends AuditContext {
	readonly viewer: Viewer;
	readonly accountId: string;
	readonly role: Membership["role"];
	readonly scope: RightScope;
}

export interface Operator extends Viewer, AuditContext {}

export type ConsoleSessions = ReturnType<typeof createConsoleSessions>;

/**
 * Keeps the session of each request and checks rights: handlers get the account's id only together with a right.
 * `passwordAgain` is false in the demo, whose users have no password.
 */
export function createConsoleSessions(options: { secondFactor: boolean; passwordAgain: boolean }) {
	const sessions = new WeakMap<Request, ConsoleSession>();
	const allowed = new WeakMap<Request, PermittedMember>();

	function of(request: Request): ConsoleSession {
		const visit = sessions.get(request);
		assert(visit !== undefined, "every request of the console is opened before it is routed");
		return visit;
	}

	function viewer(request: Request): Viewer {
		const found = of(request).viewer;
		if (found === null) throw sessionRequired();
		return found;
	}

	function actorOf(request: Request, { userId }: Viewer): AuditContext {
		const { connection } = of(request);
		return {
			connection,
			noted: (action, detail = {}) => auditNote({ actor: userId, action, detail, ip: connection.address }),
		};
	}

	/**
	 * Checks the right. Faults: `not_found` if the request has no account; `forbidden`; `account_suspended` for a change
	 * by a suspended account, unless `suspendedMay`.
	 */
	function allow(request: Request, right: Right, suspendedMay = false): PermittedMember {
		const who = viewer(request);
		const { membership } = of(request);
		if (membership === null) throw new ConsoleError("not_found", "You are not a member of any account.");
		const { accountId, role, closed, state } = membership;
		if (closed) throw new ConsoleError("forbidden", "This account requires its company's sign-in.");
		const scope = scopeForRole(role, right);
		if (scope === undefined)
			throw new ConsoleError("forbidden", "Your role in this account ({role}) cannot {right}.", {
				values: { role: ROLE_LABELS[role], right: RIGHTS[right].says },
			});
		const isRead = request.method === "GET" || request.method === "HEAD";
		if (state === "suspended" && !isRead && !suspendedMay)
			throw new ConsoleError(
				"account_suspended",
				"This account is suspended. Please contact the operator of the service.",
			);
		const found = { viewer: who, accountId, role, scope, ...actorOf(request, who) };
		allowed.set(request, found);
		return found;
	}

	function account(request: Request): PermittedMember {
		const found = allowed.get(request);
		assert(found !== undefined, "a right is asked for before the account's things");
		return found;
	}

	const mayOperate = (who: Viewer) => who.operator && (!options.secondFactor || who.twoFactorEnabled);
	const isAuthenticatedLately = (request: Request) =>
		!options.passwordAgain || viewer(request).authenticatedAgoMs <= AUTHENTICATED_FOR_MS;
	const passwordWanted = () => new ConsoleError("reauthentication_required", "Enter your password again to continue.");

	return {
		open: (request: Request, session: ConsoleSession) => void sessions.set(request, session),
		of,
		viewer,
		allow,
		account,
		mayOperate,
		/** Requires an operator. Faults `forbidden`, `second_factor_required`. */
		operator(request: Request): Operator {
			const who = viewer(request);
			if (!who.operator) throw new ConsoleError("forbidden", "This page is for operators of the service.");
			if (!mayOperate(who))
				throw new ConsoleError(
					"second_factor_required",
					"Operators need two-factor authentication. Set it up in your settings.",
				);
			return { ...who, ...actorOf(request, who) };
		},
		/**
		 * Requires that this session entered the password within the last 15 minutes, for actions that a stolen session
		 * must not perform. Fault `reauthentication_required`.
		 */
		authenticatedLately(request: Request): void {
			if (!isAuthenticatedLately(request)) throw passwordWanted();
		},
		isAuthenticatedLately,
		passwordWanted,
	};
}

export const sessionRequired = (): Fault => new ConsoleError("session_required", "Please sign in.");
