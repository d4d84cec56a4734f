import type { Right } from "../../console/views.ts";
import { rightText, roleName } from "../labels.ts";
import { ActButton } from "../parts/form.tsx";
import { Empty, ErrorMessage, Page, Panel } from "../parts/page.tsx";
import { useAction } from "../resource.ts";
import { linkRenderer } from "../router.tsx";
import { useAccount, useSession } from "../session.tsx";
import { rich, t } from "../texts.tsx";

export function NotAllowedPage({ right }: { right: Right }) {
	const account = useAccount();
	return (
		<Page title={t("No permission")}>
			<Panel>
				<Empty title={t("Your role in {name} is {role}.", { name: account.name, role: roleName(account.role) })}>
					{rich("This role cannot {says}. An owner or admin of the account can give you another role.", {
						says: rightText(right),
					})}
				</Empty>
			</Panel>
		</Page>
	);
}

/** Page for an account that requires its company's single sign-on, when the session began in another way. */
export function ClosedPage() {
	const account = useAccount();
	const leave = useAction(useSession().signOut);
	return (
		<Page title={t("Company sign-in required")}>
			<Panel>
				<Empty
					title={t("{name} requires its company's single sign-on.", { name: account.name })}
					action={
						<>
							{leave.error && <ErrorMessage error={leave.error} />}
							<ActButton size="sm" label={t("Sign out to use single sign-on")} action={leave} />
						</>
					}
				>
					{rich("Your own profile is in the <link>settings</link>.", { link: linkRenderer("/settings") })}
				</Empty>
			</Panel>
		</Page>
	);
}

/** Page for a user without an account, such as an operator or a removed member. */
export function NoAccountPage() {
	const { me } = useSession();
	return (
		<Page title={t("No account")} narrow>
			<Empty
				title={t("You are not a member of any account.")}
				action={
					me?.user.operator && <ActButton size="sm" look="main" label={t("Go to the operator pages")} to="/operator" />
				}
			>
				{rich(
					"Keys, credit and usage belong to an account. Ask an owner to invite {email}, then open the link in the mail.",
					{ email: me?.user.email },
				)}
			</Empty>
		</Page>
	);
}

export function NotFoundPage() {
	return (
		<Page title={t("Page not found")} narrow>
			<Empty
				title={t("This page does not exist.")}
				action={<ActButton size="sm" label={t("Go to the home page")} to="/" />}
			>
				{t("Check the address, or ask for access to the page.")}
			</Empty>
		</Page>
	);
}
