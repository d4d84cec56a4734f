import { Button } from "@mantine/core";
import { Page } from "../parts/page.tsx";
import { Empty } from "../parts/problem.tsx";
import { Link } from "../router.tsx";
import { useSession } from "../session.tsx";
import { rich, t } from "../texts.tsx";

/** For somebody who is signed in and a member of nothing: an operator without an account, or a member who was removed. */
export function NoAccountPage() {
	const { me } = useSession();
	return (
		<Page title={t("No account")} narrow>
			<Empty
				title={t("You are not a member of any account.")}
				action={
					me?.user.operator ? (
						<Button component={Link} to="/operator">
							{t("Go to the operator pages")}
						</Button>
					) : undefined
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
