import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.zip.CRC32;
import org.apache.kafka.admin.AdminUtils;
import org.apache.kafka.admin.BrokerMetadata;
import org.apache.kafka.common.utils.Utils;

/** Runs Kafka's own code on request: one line in, one line "nanoseconds checksum" out. */
public class KafkaReference {
    private static byte[][] keys;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        List<BrokerMetadata> brokers = new ArrayList<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "brokers" -> {
                    brokers = new ArrayList<>();
                    for (int i = 1; i < words.length; i++) {
                        Optional<String> rack = words[i].equals("-") ? Optional.empty() : Optional.of(words[i]);
                        brokers.add(new BrokerMetadata(i - 1, rack));
                    }
                    System.out.println("0 0");
                }
                case "place" -> System.out.println(place(brokers, Integer.parseInt(words[1]), Integer.parseInt(words[2])));
                case "keys" -> {
                    drawKeys(Integer.parseInt(words[1]));
                    System.out.println("0 0");
                }
                case "hash" -> System.out.println(hash(Integer.parseInt(words[1])));
                default -> throw new IllegalArgumentException(line);
            }
            System.out.flush();
        }
    }

    private static String place(List<BrokerMetadata> brokers, int partitions, int start) {
        System.gc();
        long begin = System.nanoTime();
        Map<Integer, List<Integer>> layout = AdminUtils.assignReplicasToBrokers(brokers, partitions, 3, start, 0);
        long spent = System.nanoTime() - begin;
        CRC32 checksum = new CRC32();
        byte[] bytes = new byte[4];
        for (int p = 0; p < partitions; p++) {
            for (int broker : layout.get(p)) {
                for (int i = 0; i < 4; i++) {
                    bytes[i] = (byte) (broker >>> (8 * i));
                }
                checksum.update(bytes);
            }
        }
        return spent + " " + checksum.getValue();
    }

    private static void drawKeys(int count) {
        keys = new byte[count][16];
        for (int i = 0; i < 2 * count; i++) {
            long z = (i + 1) * 0x9E3779B97F4A7C15L;
            z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
            z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
            z ^= z >>> 31;
            for (int b = 0; b < 8; b++) {
                keys[i / 2][8 * (i % 2) + b] = (byte) (z >>> (8 * b));
            }
        }
    }

    private static String hash(int partitions) {
        long sum = 0;
        long begin = System.nanoTime();
        for (byte[] key : keys) {
            sum += Utils.toPositive(Utils.murmur2(key)) % partitions;
        }
        return (System.nanoTime() - begin) + " " + sum;
    }
}
