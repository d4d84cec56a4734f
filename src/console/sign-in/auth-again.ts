import { isAPIError } from "better-auth/api";
import type { Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import { createAttempts, passwordAgainLimits } from "./auth-attempts.ts";

/**
 * Somebody who is signed in gives the password again, so that this session may do sensitive acts for a while. Faults:
 * invalid_request if it is wrong, or if the person has none; rate_limit_exceeded.
 */
export async function authenticateAgain(
	{ statements, visits, auth }: Parts<"statements" | "auth" | "visits">,
	request: Request,
	password: string,
): Promise<{ authenticated: true }> {
	const { sessionId } = visits.viewer(request);
	const attempts = createAttempts(statements);
	const limits = passwordAgainLimits(sessionId);
	try {
		await attempts.count(limits);
		await auth().api.verifyPassword({ body: { password }, headers: request.headers });
	} catch (error) {
		if (!isAPIError(error) || error.statusCode >= 500) throw error;
		if (error.statusCode === 429) throw new ConsoleError("rate_limit_exceeded", "Too many attempts. Sign in anew.");
		throw new ConsoleError("invalid_request", "The password is wrong.", { param: "password" });
	}
	await attempts.takeBack(limits);
	// By the machine's clock, as all of a session's moments: its age is reckoned by that one, and the database's may be another time.
	await statements`update session set authenticated_at = to_timestamp(${Date.now()}::double precision / 1000.0) where id = ${sessionId}`;
	return { authenticated: true };
}
