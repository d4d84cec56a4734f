import { Button } from "@mantine/core";
import { Page } from "../parts/page.tsx";
import { Empty } from "../parts/problem.tsx";
import { Link } from "../router.tsx";

export function NotFoundPage() {
	return (
		<Page title="No such page" narrow>
			<Empty
				title="There is nothing at this address."
				action={
					<Button component={Link} to="/" variant="default">
						Go to the start
					</Button>
				}
			>
				The address may be mistyped, or what it named is not open to you.
			</Empty>
		</Page>
	);
}
