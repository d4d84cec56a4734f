import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.http.StreamResponse;
import com.openai.models.chat.completions.ChatCompletionChunk;
import com.openai.models.chat.completions.ChatCompletionCreateParams;

public class Chat {
    public static void main(String[] args) {
        OpenAIClient client = OpenAIOkHttpClient.builder()
            .baseUrl("{{baseUrl}}")
            .apiKey(System.getenv("{{keyVariable}}"))
            .build();
        ChatCompletionCreateParams params = ChatCompletionCreateParams.builder()
            .model("{{model}}")
            .addUserMessage("{{question}}")
            .build();
        try (StreamResponse<ChatCompletionChunk> stream = client.chat().completions().createStreaming(params)) {
            stream.stream()
                .flatMap(chunk -> chunk.choices().stream())
                .flatMap(choice -> choice.delta().content().stream())
                .forEach(System.out::print);
        }
        client.close();
    }
}
