import { mailedLink, operator, signedUp, topUp } from "../../console/person.ts";
import { cookiesOf } from "../chromium.ts";
import { type SceneOptions, withScene } from "../stage.ts";

/** Opens a window of a person who owns an account with credit and is an admin of another account. */
export async function withTwoAccounts(options: SceneOptions = {}) {
	const { service, upstream, open } = await withScene(options);
	const signUp = () => signedUp(service, options.brand ? { acceptedTerms: "v1" } : {});
	const [owner, friend] = [await signUp(), await signUp()];
	await owner.send("PATCH", "/api/console/account", { name: "Alder Works" });
	await friend.send("PATCH", "/api/console/account", { name: "Birch Works" });
	await friend.send("POST", "/api/console/invitations", { email: owner.email, role: "admin" });
	const token = new URL(await mailedLink(owner)).searchParams.get("token");
	await owner.send("POST", "/api/console/invitations/accept", { token });
	await topUp(owner, await operator(service));
	const { page, context, complaints } = await open({ person: owner });

	const heading = (name: string) => page.getByRole("heading", { name, exact: true, level: 1 });
	async function walkTo(name: string): Promise<void> {
		await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name, exact: true }).click();
		await heading(name).waitFor();
	}
	async function switchTo(name: string): Promise<void> {
		await page.getByRole("button", { name: /^Account: / }).click();
		await page.getByRole("menuitem", { name }).click();
		await page.getByRole("button", { name: `Account: ${name}` }).waitFor();
	}
	const name = () => page.getByLabel("Name of the account");
	const signIn = (as: typeof owner) => context.addCookies(cookiesOf(as, service.url));
	return { service, upstream, owner, friend, page, context, complaints, heading, walkTo, switchTo, name, signIn };
}
