import { expect, test } from "bun:test";
import { revokeOperator } from "../../src/console/operator/operator-admin.ts";
import { operator, PASSWORD, PERSON_ENV, type Person, signedUp } from "../console/person.ts";
import { withChat } from "../support/service.ts";
import { waitFor } from "../support/wait.ts";

const { service } = await withChat({ env: PERSON_ENV });

/** Opens the live updates of a page. Returns the received events, and whether the server ended the stream. */
async function watch(person: Person, path: string) {
	const response = await person.fetch(path);
	if (response.status !== 200) throw new Error(`the page was refused: ${response.status}`);
	const seen = { text: "", isOver: false };
	void (async () => {
		const decoder = new TextDecoder();
		for await (const chunk of response.body as ReadableStream<Uint8Array>) seen.text += decoder.decode(chunk);
		seen.isOver = true;
	})();
	await waitFor(() => seen.text.includes("event: "), "the page to hear the present state");
	return seen;
}

const overview = (accountId: string) => `/api/console/live?account=${accountId}`;

test("live updates of a console page end when its session loses its rights", async () => {
	const owner = await signedUp(service);
	const [guest, leaver] = [await signedUp(service), await signedUp(service)];
	const [thrownOut, forgetful] = [await signedUp(service), await signedUp(service)];
	const boss = await operator(service);
	const { body } = await guest.get("/api/console/me");
	await service.db
		.sql`insert into member (user_id, account_id, role) values (${body.user.id}, ${owner.accountId}, 'developer')`;
	const pages = {
		removed: await watch(guest, overview(owner.accountId)),
		signedOut: await watch(leaver, overview(leaver.accountId)),
		ended: await watch(thrownOut, overview(thrownOut.accountId)),
		reset: await watch(forgetful, overview(forgetful.accountId)),
		operator: await watch(boss, "/api/console/live?topics=operator"),
	};
	const stays = [await watch(owner, overview(owner.accountId)), await watch(guest, overview(guest.accountId))];
	await service.db.sql`delete from member where user_id = ${body.user.id} and account_id = ${owner.accountId}`;
	await leaver.send("POST", "/api/auth/sign-out");
	await service.db
		.sql`delete from session where user_id = (select user_id from member where account_id = ${thrownOut.accountId})`;
	await forgetful.send("POST", "/api/auth/change-password", {
		currentPassword: PASSWORD,
		newPassword: "another long passphrase of mine",
		revokeOtherSessions: true,
	});
	await revokeOperator(service.db.statements, boss.email);
	await waitFor(() => Object.values(pages).every(({ isOver }) => isOver), "all these pages to be ended", 20_000).catch(
		(error: unknown) => {
			throw new Error(`${error}: ${JSON.stringify(Object.entries(pages).map(([who, { isOver }]) => [who, isOver]))}`);
		},
	);
	const before = Object.values(pages).map(({ text }) => text);
	await service.db.sql`update account set name = 'Renamed meanwhile' where id = ${owner.accountId}`;
	await owner.send("POST", "/api/console/credit/top-ups/transfer", { usd: "100" });
	expect(stays.map(({ isOver }) => isOver)).toEqual([false, false]);
	expect(Object.values(pages).map(({ text }) => text)).toEqual(before);
}, 60_000);
