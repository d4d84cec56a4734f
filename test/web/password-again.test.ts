import { expect, test } from "bun:test";
import { ApiError } from "../../src/web/http.ts";
import { onPasswordAsked, withPasswordAgain } from "../../src/web/resource.ts";

test("two simultaneous actions that need the password share one dialog", async () => {
	const dialog = Promise.withResolvers<boolean>();
	let dialogs = 0;
	let isGiven = false;
	// Simulates the page's dialog: opening it a second time would drop the first request.
	onPasswordAsked(() => {
		dialogs += 1;
		return dialogs === 1 ? dialog.promise : Promise.resolve(false);
	});
	const act = async (name: string) => {
		if (!isGiven) throw new ApiError("The password, please.", { status: 403, code: "reauthentication_required" });
		return name;
	};
	const both = Promise.all([withPasswordAgain(() => act("one")), withPasswordAgain(() => act("other"))]);
	await Promise.resolve();
	isGiven = true;
	dialog.resolve(true);
	expect(await both).toEqual(["one", "other"]);
	expect(dialogs).toBe(1);
	onPasswordAsked(undefined);
});
