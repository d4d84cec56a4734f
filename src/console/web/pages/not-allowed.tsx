import { Button } from "@mantine/core";
import { RIGHTS, type Right, ROLE_LABELS } from "../../members/roles.ts";
import { Page, Panel } from "../parts/page.tsx";
import { Empty } from "../parts/problem.tsx";
import { Link } from "../router.tsx";
import { useAccount, useSession } from "../session.tsx";

export function NotAllowedPage({ right }: { right: Right }) {
	const account = useAccount();
	return (
		<Page title="Not for your role">
			<Panel>
				<Empty title={`Your role in ${account.name} is ${ROLE_LABELS[account.role]}.`}>
					It may not {RIGHTS[right].says}. An owner or admin of the account can give you another role.
				</Empty>
			</Panel>
		</Page>
	);
}

/** The company wants its people to come in by its own sign-in. */
export function ClosedPage() {
	const account = useAccount();
	const { signOut } = useSession();
	return (
		<Page title="By your company's sign-in">
			<Panel>
				<Empty
					title={`${account.name} is opened by its company's sign-in alone.`}
					action={
						<Button variant="default" onClick={() => void signOut()}>
							Sign out, and in with your company
						</Button>
					}
				>
					What is your own stands in the <Link to="/settings">settings</Link> as before.
				</Empty>
			</Panel>
		</Page>
	);
}
